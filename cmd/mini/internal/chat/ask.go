package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ask"
)

// ask puts a question until there is an answer that is no slash command. Changing
// the mode answers nothing, so that the question is put again; but one for a
// command of the person's own is void in any other mode than human, and its answer
// is then empty. The error is ErrLeft, ErrInterrupt, or the cause of ctx.
func (s *Session) ask(ctx context.Context, q Question) (string, error) {
	for {
		text, err := s.put(ctx, q)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, "\r\n", "\n")
		slash, isSlash := parse(text)
		switch {
		case !isSlash:
			return unescaped(text), nil
		case slash.act == actMulti:
			q.Multi = true
		case slash.act == actUndo && q.Kind == AskWord:
			s.complain("That is what is asked.")
		case slash.act == actUndo && q.Kind == AskKeep:
			return "no", nil
		case slash.act == actUndo:
			if err := s.undo(ctx); err != nil {
				return "", err
			}
		case slash.act == actLeave:
			return "", s.leave()
		default:
			switch changed := s.obey(ctx, slash); {
			case changed && q.Kind == AskCommand:
				return "", nil
			case changed && q.Kind == AskConfirm:
				s.tell("This command still waits for an answer.")
			}
		}
	}
}

// yes puts a question of yes or no.
func (s *Session) yes(ctx context.Context, q Question, usual bool) (bool, error) {
	for {
		text, err := s.ask(ctx, q)
		if err != nil {
			return false, err
		}
		if yes, ok := ask.YesNo(text, usual); ok {
			return yes, nil
		}
		s.complain(ask.Neither)
	}
}

// put shows a question once, after all that happened before it.
func (s *Session) put(ctx context.Context, q Question) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.left {
		s.mu.Unlock()
		return "", ErrLeft
	}
	s.open, s.halting = cancel, false
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open = nil
		s.mu.Unlock()
	}()
	s.catchUp(ctx)
	text, err := s.Front.Ask(ctx, q)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if errors.Is(err, ErrLeft) {
		return "", s.leave()
	}
	return "", err
}

// leave notes that there will be no answer any more.
func (s *Session) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	return ErrLeft
}

// gone is the error that ends the attempt for a person who has left.
func gone(err error) error {
	if errors.Is(err, ErrLeft) || errors.Is(err, ErrInterrupt) {
		return agent.ErrInterrupted
	}
	return err
}

// insist puts a question for which Ctrl-C has no other meaning than that the
// person wants to leave: the second in a row does.
func (s *Session) insist(ctx context.Context, q Question) (string, error) {
	text, err := s.ask(ctx, q)
	if !errors.Is(err, ErrInterrupt) {
		return text, err
	}
	s.tell("Ctrl-C once more leaves; an answer goes on.")
	text, err = s.ask(ctx, q)
	if errors.Is(err, ErrInterrupt) {
		return "", s.leave()
	}
	return text, err
}
