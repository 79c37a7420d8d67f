package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
)

// NextCommand implements agent.User: in human mode the user writes the command.
func (s *Session) NextCommand(ctx context.Context) (string, error) {
	for s.currentMode() == Human && !s.NonInteractive {
		text, err := s.askOrQuit(ctx, Question{Kind: AskCommand, Text: "Your command", Hint: "/c or /y returns to the model, /h shows help"})
		if err != nil {
			return "", attemptError(err)
		}
		if strings.TrimSpace(text) != "" {
			return text, nil
		}
	}
	return "", nil
}

// NextTask implements agent.User: the model has submitted its work. Quitting here accepts the
// submission.
func (s *Session) NextTask(ctx context.Context, _ *agent.Submitted) (string, error) {
	if s.NonInteractive || !s.ConfirmExit {
		return "", nil
	}
	q := Question{
		Kind: AskNextTask, Text: ask.YesNoPrompt("The model has submitted its work. End the session?", true),
		Hint: "Enter ends, any text is a new task, /d shows the changes",
	}
	for {
		text, err := s.askOrQuit(ctx, q)
		if err != nil {
			return "", nil //nolint:nilerr // the submission stands
		}
		switch end, ok := ask.ParseYesNo(text, true); {
		case !ok:
			return text, nil
		case end:
			return "", nil
		}
		s.notify("Enter the next task.")
	}
}

// ReadTask asks for the task at the beginning of a session. It returns "" if the user quits.
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
		Kind: AskMessage, Text: "Interrupted. Message to the model?", Hint: "Enter continues without one, Ctrl-C quits, /h shows help",
	})
	if err != nil {
		_ = s.markQuit() // Ctrl-C quits, too
		return "", attemptError(err)
	}
	return strings.TrimSpace(text), nil
}

// askUndo asks whether to undo all changes, undoes them, and tells the model.
func (s *Session) askUndo(ctx context.Context) error {
	changes, ok := s.currentChanges(ctx)
	if !ok {
		return nil
	}
	q := Question{
		Kind: AskOther, Text: ask.YesNoPrompt(fmt.Sprintf("Undo all changes (%s)?", changes.Summary), false),
		Hint: "Enter keeps them, y undoes them", Answers: []string{"no", "yes"},
	}
	undo, err := s.askYesNo(ctx, q, false)
	if err != nil {
		return err
	}
	if !undo {
		s.notify("Nothing was undone.")
		return nil
	}
	if s.restore(ctx, changes) {
		s.Inbox.Steer("The user has put all files back as they were at the start of the session.")
	}
	return nil
}

// isAbbreviation reports whether an answer is a word or its beginning.
func isAbbreviation(text, word string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return text != "" && strings.HasPrefix(word, text)
}
