package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
)

// Turn implements agent.Person: in human mode the person writes the command.
func (s *Session) Turn(ctx context.Context) (string, error) {
	for s.mode() == Human && !s.Alone {
		a, err := s.insist(ctx, Question{Kind: AskCommand, Text: "Your command", Hint: "/c or /y gives the model its turn, /h helps"})
		switch {
		case err != nil:
			return "", gone(err)
		case a.switched || strings.TrimSpace(a.text) == "":
			continue
		}
		return a.text, nil
	}
	return "", nil
}

// Next implements agent.Person: the work was handed in. Who leaves at this
// question has nothing against the work, which stands.
func (s *Session) Next(ctx context.Context, _ *agent.Submitted) (string, error) {
	if s.Alone || !s.ConfirmExit {
		return "", nil
	}
	q := Question{Kind: AskNext, Text: "The model has handed in its work.", Hint: "[Enter] ends, a text is a new task, /d shows the changes"}
	for {
		a, err := s.insist(ctx, q)
		switch {
		case err != nil:
			return "", nil //nolint:nilerr // the end of questions, not of the work
		case a.switched && s.mode() == Human:
			return "The user goes on from here, with commands of their own.", nil
		case a.switched:
			continue
		case strings.TrimSpace(a.text) == "":
			return "", nil
		}
		return a.text, nil
	}
}

// Task asks for what is to be done at the beginning. It is empty for who leaves.
func (s *Session) Task(ctx context.Context, q Question) (string, error) {
	q.Kind = AskTask
	for {
		a, err := s.insist(ctx, q)
		if err != nil {
			return "", gone(err)
		}
		if !a.switched {
			return strings.TrimSpace(a.text), nil
		}
	}
}

// interrupted asks what to tell the model after an interruption; agent.Talk calls
// it on the attempt's goroutine.
func (s *Session) interrupted(ctx context.Context) (string, error) {
	a, err := s.ask(ctx, Question{
		Kind: AskMessage, Text: "Interrupted. What to tell the model?", Hint: "[Enter] goes on, Ctrl-C leaves, /h helps",
	})
	if err != nil {
		_ = s.leave() // also by Ctrl-C
		return "", gone(err)
	}
	return strings.TrimSpace(a.text), nil
}

// undo takes all changes back, if the person means it, and has the model told.
func (s *Session) undo(ctx context.Context) error {
	changes, ok := s.changes(ctx)
	if !ok {
		return nil
	}
	word, err := s.put(ctx, Question{
		Kind: AskWord, Text: fmt.Sprintf("Take all changes back (%s)?", changes.Summary), Hint: "[Enter] no, u undoes", Answers: []string{"no", "undo"},
	})
	if err != nil {
		return err
	}
	if !means(word, "undo") {
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
