package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/internal/sanitize"
)

// NextCommand implements agent.User: in human mode it asks the user for a command. An empty
// command means that the model writes the next one.
func (s *Session) NextCommand(ctx context.Context) (string, error) {
	for s.currentMode() == Human && !s.NonInteractive {
		text, err := s.askOrQuit(ctx, Question{
			Kind: AskCommand, Text: "Your command", Hint: "/c or /y returns to the model, /h shows help",
		})
		if err != nil {
			return "", attemptError(err)
		}
		if strings.TrimSpace(text) != "" {
			return text, nil
		}
	}
	return "", nil
}

// errAskAgain means that the user may have changed the files, so that the question has changed.
var errAskAgain = errors.New("the question has changed")

// NextTask implements agent.User: after a submission it asks for another task. An empty task ends
// the session and keeps the changes. If the user quits at the question, the submission stands.
func (s *Session) NextTask(ctx context.Context, _ *agent.Submitted) (string, error) {
	if s.NonInteractive || !s.ConfirmExit {
		return "", nil
	}
	q := s.endQuestion(ctx)
	for {
		text, err := s.askOrQuit(ctx, q)
		switch {
		case errors.Is(err, errAskAgain):
			q = s.endQuestion(ctx)
			continue
		case err != nil:
			return "", nil //nolint:nilerr // the submission stands
		}
		switch end, ok := ask.ParseYesNo(text, true); {
		case !ok:
			return text, nil
		case end:
			s.setDecided()
			return "", nil
		}
		q = Question{Kind: AskNextTask, Text: "What comes next?", Hint: "a text is the next task, Enter ends the session"}
	}
}

// endQuestion returns the question after a submission, which says what has changed.
func (s *Session) endQuestion(ctx context.Context) Question {
	q := Question{Kind: AskNextTask, Text: "The model has submitted its work", Hint: "Enter ends, any text is a new task"}
	if changes, err := s.finalChanges(ctx); err == nil && !changes.IsEmpty() {
		q.Text += " (" + changes.Summary + ")"
		q.Hint = "Enter keeps them and ends, a text is a new task, /d shows, /undo undoes them"
	}
	q.Text = ask.YesNoPrompt(q.Text+". End the session?", true)
	return q
}

// ReadTask asks for the task at the beginning of a session. If the user quits, the error is
// agent.ErrInterrupted.
func (s *Session) ReadTask(ctx context.Context, q Question) (string, error) {
	q.Kind = AskTask
	text, err := s.askOrQuit(ctx, q)
	if err != nil {
		return "", attemptError(err)
	}
	return strings.TrimSpace(text), nil
}

// askMessage asks for a message to the model after an interrupt. The agent's Inbox calls it on
// the goroutine of the attempt.
func (s *Session) askMessage(ctx context.Context) (string, error) {
	text, err := s.ask(ctx, Question{
		Kind: AskMessage, Text: "Interrupted. Message to the model?",
		Hint: "Enter continues without one, Ctrl-C quits, /h shows help",
	})
	if err != nil {
		_ = s.markQuit() // Ctrl-C at this question quits
		return "", attemptError(err)
	}
	return strings.TrimSpace(text), nil
}

// Answer implements agent.User: it asks for an answer to a reply without a command. If the user
// quits, the session can be resumed at the question.
func (s *Session) Answer(ctx context.Context) (string, error) {
	if s.NonInteractive {
		return "", nil
	}
	text, err := s.askOrQuit(ctx, Question{
		Kind: AskMessage, Text: "Message to the model?", Hint: "Enter lets it go on, Ctrl-D quits, /h shows help",
	})
	switch text = strings.TrimSpace(text); {
	case err != nil:
		return "", attemptError(err)
	case text == "" && s.currentMode() == Human:
		return takeOver, nil
	}
	return text, nil
}

// askUndo asks whether to undo all changes, undoes them, and tells the model.
func (s *Session) askUndo(ctx context.Context) error {
	changes, ok := s.currentChanges(ctx)
	if !ok {
		return nil
	}
	s.notify("/undo puts these files back as they were when %s. That undoes your own changes too:\n%s",
		cmp.Or(changes.SinceName, "the session began"), listFiles(changes))
	question := Question{
		Kind: AskOther, Text: ask.YesNoPrompt(fmt.Sprintf("Undo all changes (%s)?", changes.Summary), false),
		Hint: "Enter keeps them, y undoes them", Answers: []string{"no", "yes"},
	}
	undo, err := s.askYesNo(ctx, question, false)
	if err != nil {
		return err
	}
	if !undo {
		s.notify("Nothing was undone.")
		return nil
	}
	if s.undoChanges(ctx, changes) {
		s.Inbox.Steer("The user has put all files back as they were at the start of the session.")
	}
	return nil
}

// listFiles returns a line for each of the changed files: what an undo does with it.
func listFiles(c Changes) string {
	var lines []string
	for _, f := range c.Files {
		status, name, _ := strings.Cut(f, " ")
		verb := "restore"
		if status == "A" {
			verb = "remove"
		}
		lines = append(lines, fmt.Sprintf("  %-7s %s", verb, sanitize.Line(name)))
	}
	if n := c.FileCount(); n > len(c.Files) {
		lines = append(lines, fmt.Sprintf("  and %d more; /d shows them", n-len(c.Files)))
	}
	return strings.Join(lines, "\n")
}
