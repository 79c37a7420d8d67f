package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/trajectories"
)

// dir returns the folder that the session works in.
func (t *session) dir() string { return cmp.Or(t.cfg.Environment.Dir, ".") }

// openStore opens the store with the sessions of the folder.
func (t *session) openStore() (sessions.Store, error) {
	return sessions.Open(filepath.Join(userdirs.StateDir(), "mini", "sessions"), t.dir())
}

// openStored opens the latest session of the folder for --continue.
func (t *session) openStored() error {
	store, err := t.openStore()
	if errors.Is(err, os.ErrNotExist) {
		return usage.Errorf("the folder %s no longer exists", t.dir())
	}
	if err == nil {
		list := store.List()
		t.isOlder = len(list) > 0 && t.options.session != "" && t.options.session != list[0].Name
		t.stored, err = store.Open(t.options.session)
	}
	switch {
	case errors.Is(err, sessions.ErrNoSession):
		return usage.Errorf("--continue: there is no session of this folder; mini -t TASK begins one")
	case errors.Is(err, sessions.ErrInUse):
		return usage.Errorf("%s: the session is still open in another mini; end that first", t.options.resumeFlag())
	case err != nil:
		return usage.Wrap(err)
	}
	t.files = taskFiles{journal: t.stored.Journal, traj: t.stored.Trajectory}
	if err := t.readResumeState(); err != nil {
		return errors.Join(usage.Wrap(fmt.Errorf("%s: %w", t.options.resumeFlag(), err)), t.stored.Close())
	}
	return nil
}

// readResumeState reads the state of the session from its journal and adds the task of -t. It
// returns an error if the environment class or the protocol has changed, or if the session has
// submitted its work and no next task can be asked for.
func (t *session) readResumeState() error {
	state, err := agent.ReadResumeState(trajectories.Read(t.files.journal))
	if err != nil {
		return err
	}
	recorded, _ := settings.RecordedSetting(state.Attempt.Header, "agent.protocol").(string)
	recorded, configured := cmp.Or(recorded, protocol.Text), cmp.Or(t.cfg.Agent.Protocol, protocol.Text)
	switch class := state.Attempt.Header.EnvironmentClass; {
	case class != t.cfg.Environment.Class:
		return fmt.Errorf("the session used the %s environment; pass --environment-class %s", class, class)
	case recorded != configured:
		return fmt.Errorf("the session used the protocol %s; pass -c agent.protocol=%s", recorded, recorded)
	case state.Submitted && !t.options.HasTask && !t.Interactive:
		return errors.New("the session has submitted its work; pass the next task")
	}
	t.resume = state
	nextTask := t.instance.ProblemStatement
	t.instance.ProblemStatement, t.pending = t.stored.Task, t.stored.Pending
	if t.options.HasTask {
		t.addTask(nextTask)
	}
	return nil
}

// askNextTask shows the state of a resumed session. It asks for the next task if the session is
// interactive and -t is not set.
func (t *session) askNextTask(ctx context.Context) error {
	if !t.options.print {
		t.frontend.ShowNotice(chat.Notice{Text: t.recap()})
	}
	switch {
	case t.options.HasTask:
		return nil
	case !t.Interactive:
		t.addTask("")
		return nil
	}
	question := chat.Question{Text: "What comes next?", Hint: "Enter continues where it stopped, /h helps"}
	if t.resume.Submitted {
		question.Hint = "/m for several lines, /h helps"
	}
	for {
		text, err := t.chat.ReadTask(ctx, question)
		if err != nil {
			return err
		}
		if text != "" || t.pending != "" || !t.resume.Submitted {
			t.addTask(text)
			return nil
		}
	}
}

// addTask makes the messages that the model has not received and text the next task unless both are
// empty. If the model has not submitted the last task, the model receives them as if the user had
// interrupted the model. If the session has no messages, text replaces the last task.
func (t *session) addTask(text string) {
	switch all := joinTexts(t.pending, text); {
	case all == "":
	case len(t.resume.Attempt.Entries) == 0:
		t.instance.ProblemStatement = joinTexts(cmp.Or(text, t.instance.ProblemStatement), t.pending)
	case t.resume.Submitted:
		t.inbox.FollowUp(all)
	default:
		t.inbox.Interrupt(func(context.Context) (string, error) { return all, nil })
	}
	t.pending = ""
}

// joinTexts joins the texts that are not empty, as paragraphs.
func joinTexts(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
}

// maxRecapLines is the maximum number of lines that a recap shows of the task, and of the last
// reply.
const maxRecapLines = 8

// recap describes the state of a resumed session.
func (t *session) recap() string {
	text := fmt.Sprintf("mini: resuming the session of %s, after %s", t.stored.Started.Local().Format("2 January 15:04"), text.Count(t.resume.Attempt.Totals.Own.Steps, "step"))
	if out, ended, err := trajectories.ReadOutcome(t.files.journal); err == nil && ended {
		text += " (" + out.ExitStatus + ")"
	}
	text += "\n\ntask: " + clipLines(t.stored.Task)
	if message := t.lastEntry(trajectories.CauseInterruption, trajectories.CauseSteer, trajectories.CauseFollowUp); message != "" {
		text += "\n\nyour last message: " + clipLines(message)
	}
	if reply := t.lastEntry(trajectories.CauseReply); reply != "" {
		text += "\n\nlast: " + clipLines(reply)
	}
	if t.stored.Pending != "" {
		text += "\n\nnot received by the model yet, and sent next: " + clipLines(t.stored.Pending)
	}
	if t.Interactive && t.stored.Mode != "" && t.stored.Mode != t.mode.String() {
		text += fmt.Sprintf("\n\nThe session was left in %s mode, and goes on in %s mode.", t.stored.Mode, t.mode)
	}
	return text
}

// lastEntry returns the text of the last message with one of the causes; "" if there is none.
func (t *session) lastEntry(causes ...trajectories.Cause) string {
	for _, e := range slices.Backward(t.resume.Attempt.Entries) {
		if slices.Contains(causes, e.Cause) {
			return e.Content
		}
	}
	return ""
}

// clipLines returns the first maxRecapLines lines of text, indented from the second line on, and
// marks omitted lines.
func clipLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > maxRecapLines {
		lines = append(lines[:maxRecapLines], "[...]")
	}
	return strings.Join(lines, "\n      ")
}
