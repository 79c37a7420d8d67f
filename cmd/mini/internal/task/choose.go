package task

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

// chooseFromList is the value of --resume without a number.
const chooseFromList = "list"

// resumeFlag returns the flag that resumes a session, for messages.
func (o *Options) resumeFlag() string {
	if o.choice != "" {
		return "--resume"
	}
	return "--continue"
}

// chooseSession sets the session to resume: the one with the number of --resume, or the one that
// the user chooses from a list. 1 is the session that was used last.
func (o *Options) chooseSession(ctx context.Context, a *app.App) error {
	if o.resume {
		return usage.Errorf("--continue and --resume cannot be combined")
	}
	store, err := sessions.Open(filepath.Join(userdirs.StateDir(), "mini", "sessions"), ".")
	if err != nil {
		return usage.Wrap(err)
	}
	list := store.List()
	if len(list) == 0 {
		return usage.Errorf("--resume: there is no session of this folder; mini -t TASK begins one")
	}
	var number int
	switch {
	case o.choice != chooseFromList:
		number, err = strconv.Atoi(o.choice)
		if err != nil || number < 1 || number > len(list) {
			return usage.Errorf("--resume=%.40s: give a number from 1, the session used last, to %d; mini --resume shows them", o.choice, len(list))
		}
	case a.Interactive:
		if number, err = askForSession(ctx, a, list); err != nil {
			return err
		}
	default:
		return usage.Errorf("--resume: there is no terminal to choose on; give a number, as in --resume=1:\n%s", strings.Join(sessionLines(list, time.Now()), "\n"))
	}
	o.resume, o.session = true, list[number-1].Name
	return nil
}

// askForSession returns the number of the session that the user chooses.
func askForSession(ctx context.Context, a *app.App, list []sessions.Stored) (number int, err error) {
	err = config.WithPrompter(a, func(p *ask.Prompter) error {
		if err := p.Printf("Sessions of this folder, the one used last first; mini keeps %d. Enter accepts the\nnumber in brackets; Ctrl-C leaves.\n", sessions.Max); err != nil {
			return err
		}
		index, err := p.Choose(ctx, "Number", sessionLines(list, time.Now()), 0)
		number = index + 1
		return err
	})
	return number, err
}

// sessionLines returns a line for each session: time, model, end, cost and task.
func sessionLines(list []sessions.Stored, now time.Time) []string {
	var lines []string
	for _, stored := range list {
		i := stored.Info()
		used := stored.Used.Local()
		when := used.Format("2 Jan 15:04")
		if used.Format(time.DateOnly) == now.Format(time.DateOnly) {
			when = "today " + used.Format("15:04")
		}
		line := fmt.Sprintf("%-12s  %s, %s", when, cmdutil.Sanitize(cmp.Or(i.Model, "no model")), i.End)
		task := cmdutil.Sanitize(text.OneLine(text.FirstLine(strings.TrimSpace(i.Task))))
		lines = append(lines, line+": "+ansi.Truncate(task, max(20, 72-ansi.StringWidth(line)), "…"))
	}
	return lines
}
