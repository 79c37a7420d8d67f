package task

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
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
	var found sessions.Stored
	switch {
	case o.choice == chooseFromList && a.Interactive:
		found, err = askForSession(ctx, a, list)
	case o.choice != chooseFromList:
		matching := matchingSessions(list, o.choice)
		if found, err = findSession(list, o.choice); err != nil && len(matching) > 1 && a.Interactive {
			found, err = askForSession(ctx, a, matching)
		}
	default:
		err = usage.Errorf("--resume: there is no terminal to choose on; give a number or a part of the task, as in --resume 1:\n%s", strings.Join(sessionLines(list, time.Now()), "\n"))
	}
	o.resume, o.session = err == nil, found.Name
	return err
}

// findSession returns the session with a number in the list, a name, or the only one whose task contains
// the text.
func findSession(list []sessions.Stored, choice string) (sessions.Stored, error) {
	if number, err := strconv.Atoi(choice); err == nil && number >= 1 && number <= len(list) {
		return list[number-1], nil
	}
	if i := slices.IndexFunc(list, func(s sessions.Stored) bool { return s.Name == choice }); i >= 0 {
		return list[i], nil
	}
	switch found := matchingSessions(list, choice); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return sessions.Stored{}, usage.Errorf("--resume %.40q: no session of this folder has this number, and no task contains it; mini --resume shows the %s", choice, text.Count(len(list), "session"))
	default:
		return sessions.Stored{}, usage.Errorf("--resume %.40q: %s contain it; say more of one, or give its number:\n%s", choice, text.Count(len(found), "task"), strings.Join(numberedLines(list, found), "\n"))
	}
}

// matchingSessions returns the sessions whose task contains all words of a text.
func matchingSessions(list []sessions.Stored, query string) []sessions.Stored {
	return slices.DeleteFunc(slices.Clone(list), func(s sessions.Stored) bool { return !ask.Matches(s.Task, query) })
}

// numberedLines returns the lines of some sessions of the list, with their numbers.
func numberedLines(list, some []sessions.Stored) []string {
	var lines []string
	for i, line := range sessionLines(some, time.Now()) {
		number := 1 + slices.IndexFunc(list, func(s sessions.Stored) bool { return s.Name == some[i].Name })
		lines = append(lines, fmt.Sprintf("%3d  %s", number, line))
	}
	return lines
}

// askForSession returns the session that the user chooses.
func askForSession(ctx context.Context, a *app.App, list []sessions.Stored) (chosen sessions.Stored, err error) {
	err = config.WithPrompter(a, func(p *ask.Prompter) error {
		if err := p.Printf("Sessions of this folder, the one used last first; mini keeps %d.\nEnter accepts the number in brackets; Ctrl-C leaves.\n", sessions.Max); err != nil {
			return err
		}
		tasks := make([]string, len(list))
		for i, s := range list {
			tasks[i] = s.Task
		}
		index, err := p.Choose(ctx, "Number, or a part of the task", sessionLines(list, time.Now()), 0, tasks...)
		if err == nil {
			chosen = list[index]
		}
		return err
	})
	return chosen, err
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

// listSessions returns the list of the sessions whose task contains a text. It implements
// chat.Config.Sessions.
func (t *session) listSessions(query string) string {
	store, err := t.openStore()
	if err != nil {
		return cmdutil.Sanitize(err.Error())
	}
	list := store.List()
	found := matchingSessions(list, query)
	if len(found) == 0 {
		return "No session of this folder has such a task."
	}
	return strings.Join(numberedLines(list, found), "\n") + "\nmini --resume NUMBER resumes one; mini view shows one in a browser."
}
