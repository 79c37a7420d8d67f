package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/sessions"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// dir is the folder that the session works in.
func (t *task) dir() string { return cmp.Or(t.cfg.Environment.Dir, ".") }

// folder has the sessions of this folder.
func (t *task) folder() (sessions.Folder, error) {
	return sessions.In(filepath.Join(stateDir(), "mini", "sessions"), t.dir())
}

// recall finds the last session of this folder, to go on with.
func (t *task) recall() error {
	folder, err := t.folder()
	if errors.Is(err, os.ErrNotExist) {
		return usagef("the folder %s is not there any more", t.dir())
	}
	if err == nil {
		t.held, err = folder.Newest()
	}
	switch {
	case errors.Is(err, sessions.ErrNone):
		return usagef("--continue: there is no session of this folder; mini -t TASK begins one")
	case errors.Is(err, sessions.ErrBusy):
		return usagef("--continue: the last session of this folder is still open in another mini; end that first")
	case err != nil:
		return before(err)
	}
	t.files = taskFiles{journal: t.held.Journal, traj: t.held.Trajectory}
	if err := t.recallPast(); err != nil {
		return errors.Join(before(fmt.Errorf("--continue: %w", err)), t.held.Close())
	}
	return nil
}

func (t *task) recallPast() error {
	past, err := agent.Recall(trajectories.Read(t.files.journal))
	if err != nil {
		return err
	}
	was, now := protocolOf(past.Header), cmp.Or(t.cfg.Agent.Protocol, protocol.Text)
	switch class := past.Header.EnvironmentClass; {
	case class != t.cfg.Environment.Class:
		return fmt.Errorf("the session was in the %s environment; say --environment-class %s", class, class)
	case was != now:
		return fmt.Errorf("the session's commands were written in the protocol %s; say -c agent.protocol=%s", was, was)
	case past.Submitted && !t.options.hasTask && !t.Terminal:
		return errors.New("the work of the session was handed in; say with -t what comes next")
	}
	t.past = past
	text := t.in.ProblemStatement
	t.in.ProblemStatement = t.held.Task
	if t.options.hasTask {
		t.followUp(text)
	}
	return nil
}

// protocolOf is the protocol that a journal was made with.
func protocolOf(h trajectories.Header) string {
	var config struct {
		Agent struct {
			Protocol string `json:"protocol"`
		} `json:"agent"`
	}
	if json.Unmarshal(h.Config, &config) != nil || config.Agent.Protocol == "" {
		return protocol.Text
	}
	return config.Agent.Protocol
}

// agreeToGoOn shows where the session stood, and asks how it goes on.
func (t *task) agreeToGoOn(ctx context.Context) error {
	t.front.Tell(chat.Note{Text: t.recap()})
	if !t.Terminal || t.options.hasTask {
		return nil
	}
	q := chat.Question{Text: "What comes next?", Hint: "Enter goes on where it stopped, /h helps"}
	if t.past.Submitted {
		q.Hint = "/m for several lines, /h helps"
	}
	for {
		text, err := t.chat.Task(ctx, q)
		if err != nil {
			return err
		}
		if text != "" || !t.past.Submitted {
			t.followUp(text)
			return nil
		}
	}
}

// followUp has the model told what comes next: where the work was handed in, it
// goes on with that; else it is as if the session had been interrupted.
func (t *task) followUp(text string) {
	switch {
	case text == "":
	case len(t.past.Entries) == 0:
		t.in.ProblemStatement = text
	case t.past.Submitted:
		t.talk.FollowUp(text)
	default:
		t.talk.Interrupt(func(context.Context) (string, error) { return text, nil })
	}
}

// maxRecap is how many lines are shown of a text.
const maxRecap = 8

// recap is where a session stood.
func (t *task) recap() string {
	text := fmt.Sprintf("mini: going on with the session of %s, after %s", t.held.Started.Local().Format("2 January 15:04"), report.Count(t.past.Steps, "step"))
	if out, ended, err := trajectories.Last(t.files.journal); err == nil && ended {
		text += " (" + out.ExitStatus + ")"
	}
	text += "\n\ntask: " + briefly(t.in.ProblemStatement)
	for i := len(t.past.Entries) - 1; i >= 0; i-- {
		if e := t.past.Entries[i]; e.Role == model.Assistant {
			return text + "\n\nlast: " + briefly(e.Content)
		}
	}
	return text
}

func briefly(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	if len(all) > maxRecap {
		all = append(all[:maxRecap], "[...]")
	}
	return strings.Join(all, "\n      ")
}
