package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/minibench/mini/agent"
)

// answer is what a question came to.
type answer struct {
	text string
	// switched says that the mode was changed instead; it is not what it was when
	// the question was put.
	switched bool
}

// ask puts a question until there is an answer that is no slash command, but for
// one that changes the mode, whose meaning is the asker's affair. The error is
// ErrLeft, ErrInterrupt, or the cause of ctx.
func (s *Session) ask(ctx context.Context, q Question) (answer, error) {
	for {
		text, err := s.put(ctx, q)
		if err != nil {
			return answer{}, err
		}
		text = strings.ReplaceAll(text, "\r\n", "\n")
		slash, isSlash := parse(text)
		switch {
		case !isSlash:
			return answer{text: unescaped(text)}, nil
		case slash.act == actMulti:
			q.Multi = true
		case slash.act == actUndo:
			if err := s.undo(ctx); err != nil {
				return answer{}, err
			}
		case slash.act == actLeave:
			return answer{}, s.leave()
		default:
			if s.obey(ctx, slash) {
				return answer{switched: true}, nil
			}
		}
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
func (s *Session) insist(ctx context.Context, q Question) (answer, error) {
	a, err := s.ask(ctx, q)
	if !errors.Is(err, ErrInterrupt) {
		return a, err
	}
	s.tell("Ctrl-C once more leaves; an answer goes on.")
	a, err = s.ask(ctx, q)
	if errors.Is(err, ErrInterrupt) {
		return answer{}, s.leave()
	}
	return a, err
}
