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
	s.startRecordStep(ctx)
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

// askUndo asks what to undo, the last step or all changes, undoes it, and tells the model. what is
// the text after /undo.
func (s *Session) askUndo(ctx context.Context, what string) error {
	all, ok := s.currentChanges(ctx)
	if !ok {
		return nil
	}
	last, err := s.Snapshot.LastStep(ctx)
	if err != nil {
		s.notifyError("The last step cannot be undone: %v", err)
		return nil
	}
	switch what = strings.ToLower(what); {
	case what != "" && what != "1" && what != "all":
		s.notifyError("/undo takes 1, for the last step that changed files, or all.")
		return nil
	case what == "1" && last.IsEmpty():
		s.notify("No step has changed files, or all such steps are undone. /undo all undoes what is left.")
		return nil
	case what == "" && (last.IsEmpty() || last.Patch == all.Patch):
		what = "all"
	case what == "":
		s.notify("The last step that changed files is step %d: %s", last.Step, sanitize.Line(last.event().Text()))
		what, err = s.askUndoChoice(ctx, all)
		if err != nil || what == "" {
			return err
		}
	}
	if what == "1" {
		return s.undoStep(ctx, last)
	}
	return s.undoAll(ctx, all)
}

// askUndoChoice asks for the text after /undo; "" means that nothing is to be undone.
func (s *Session) askUndoChoice(ctx context.Context, all Changes) (what string, err error) {
	for {
		text, err := s.ask(ctx, Question{
			Kind: AskOther, Text: fmt.Sprintf("Undo that step, or all changes (%s)? [1/all/N]", all.Summary),
			Hint: "Enter keeps them, 1 undoes the step, all everything", Answers: []string{"no", "1", "all"},
		})
		if err != nil {
			return "", err
		}
		switch answer := strings.ToLower(strings.TrimSpace(text)); answer {
		case "", "n", "no":
			s.notify("Nothing was undone.")
			return "", nil
		case "1", "all":
			return answer, nil
		}
		s.notifyError("Please answer 1, all or n.")
	}
}

// undoStep asks whether to undo the last step, undoes it, and tells the model.
func (s *Session) undoStep(ctx context.Context, last Changes) error {
	s.notify("/undo 1 puts these files back as they were before step %d; files that have changed since stay:\n%s", last.Step, listFiles(last))
	undone, err := s.confirmUndo(ctx, fmt.Sprintf("Undo step %d?", last.Step), s.Snapshot.UndoStep)
	if undone {
		s.Inbox.Steer(fmt.Sprintf("The user has undone the changes that step %d made in files: %s.", last.Step, last.event().Text()))
	}
	return err
}

// undoAll asks whether to undo all changes, undoes them, and tells the model.
func (s *Session) undoAll(ctx context.Context, all Changes) error {
	s.notify("/undo puts these files back as they were when %s. That undoes your own changes too:\n%s",
		cmp.Or(all.SinceName, "the session began"), listFiles(all))
	undone, err := s.confirmUndo(ctx, fmt.Sprintf("Undo all changes (%s)?", all.Summary), func(ctx context.Context) (string, error) {
		return s.Snapshot.Undo(ctx, all)
	})
	if undone {
		s.Inbox.Steer("The user has put all files back as they were at the start of the session.")
	}
	return err
}

// confirmUndo asks whether to undo changes, and calls undo. It reports whether they are undone.
func (s *Session) confirmUndo(ctx context.Context, text string, undo func(context.Context) (string, error)) (bool, error) {
	question := Question{
		Kind: AskOther, Text: ask.YesNoPrompt(text, false), Hint: "Enter keeps them, y undoes them", Answers: []string{"no", "yes"},
	}
	yes, err := s.askYesNo(ctx, question, false)
	if err != nil {
		return false, err
	}
	if !yes {
		s.notify("Nothing was undone.")
		return false, nil
	}
	return s.undoChanges(ctx, undo), nil
}

// listFiles returns a line for each of the changed files: what an undo does with it.
func listFiles(c Changes) string {
	var lines []string
	for _, f := range c.Files {
		verb := "restore"
		if f.IsNew {
			verb = "remove"
		}
		lines = append(lines, fmt.Sprintf("  %-7s %s", verb, sanitize.Line(f.Name)))
	}
	if n := c.Count; n > len(c.Files) {
		lines = append(lines, fmt.Sprintf("  and %d more; /d shows them", n-len(c.Files)))
	}
	return strings.Join(lines, "\n")
}
