package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ask"
)

// Turn implements agent.Person: in human mode the person writes the command.
func (s *Session) Turn(ctx context.Context) (string, error) {
	for s.mode() == Human && !s.Alone {
		text, err := s.insist(ctx, Question{Kind: AskCommand, Text: "Your command", Hint: "/c or /y gives the model its turn, /h helps"})
		if err != nil {
			return "", gone(err)
		}
		if strings.TrimSpace(text) != "" {
			return text, nil
		}
	}
	return "", nil
}

// Next implements agent.Person: the work was handed in. Who leaves at this
// question has nothing against the work, which stands.
func (s *Session) Next(ctx context.Context, _ *agent.Submitted) (string, error) {
	if s.Alone || !s.ConfirmExit {
		return "", nil
	}
	q := Question{
		Kind: AskNext, Text: ask.Marked("The model has handed in its work. End the session?", true),
		Hint: "Enter ends, a text is a new task, /d shows the changes",
	}
	for {
		text, err := s.insist(ctx, q)
		if err != nil {
			return "", nil //nolint:nilerr // the end of questions, not of the work
		}
		switch end, ok := ask.YesNo(text, true); {
		case !ok:
			return text, nil
		case end:
			return "", nil
		}
		s.tell("Then write what to do next.")
	}
}

// Task asks for what is to be done at the beginning. It is empty for who leaves.
func (s *Session) Task(ctx context.Context, q Question) (string, error) {
	q.Kind = AskTask
	text, err := s.insist(ctx, q)
	if err != nil {
		return "", gone(err)
	}
	return strings.TrimSpace(text), nil
}

// interrupted asks what to tell the model after an interruption; agent.Talk calls
// it on the attempt's goroutine.
func (s *Session) interrupted(ctx context.Context) (string, error) {
	text, err := s.ask(ctx, Question{
		Kind: AskMessage, Text: "Interrupted. What to tell the model?", Hint: "Enter goes on, Ctrl-C leaves, /h helps",
	})
	if err != nil {
		_ = s.leave() // also by Ctrl-C
		return "", gone(err)
	}
	return strings.TrimSpace(text), nil
}

// undo takes all changes back, if the person means it, and has the model told.
func (s *Session) undo(ctx context.Context) error {
	changes, ok := s.changes(ctx)
	if !ok {
		return nil
	}
	q := Question{
		Kind: AskWord, Text: ask.Marked(fmt.Sprintf("Take all changes back (%s)?", changes.Summary), false),
		Hint: "Enter leaves them, y undoes them", Answers: []string{"no", "yes"},
	}
	undo, err := s.yes(ctx, q, false)
	if err != nil {
		return err
	}
	if !undo {
		s.tell("Nothing was undone.")
		return nil
	}
	if s.undone(ctx, changes) {
		s.Talk.Steer("The user has put all files back as they were at the start of the session.")
	}
	return nil
}

// means says whether an answer is a word, or its beginning.
func means(text, word string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return text != "" && strings.HasPrefix(word, text)
}
