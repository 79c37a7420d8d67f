package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
)

// errModeChanged means that the user has changed the mode at the question AskConfirm.
var errModeChanged = errors.New("the mode has changed")

// ask asks a question and returns the answer. If the user enters a slash command or a shell
// command after an exclamation mark, ask executes the command and asks again. A change of the mode
// answers the question AskConfirm with errModeChanged, and ends these with an empty answer:
// AskCommand, since outside of human mode the user does not write commands, and AskMessage in human
// mode. The error is ErrQuit, ErrInterrupted, agent.ErrInterrupted after a hangup, the cause of ctx,
// or another error of Frontend.Ask.
func (s *Session) ask(ctx context.Context, q Question) (string, error) {
	s.recordStep(ctx, s.Events.LastSeq())
	if !q.agentRuns {
		defer s.skipChanges(ctx)
	}
	for {
		text, err := s.askOnce(ctx, q)
		if err != nil {
			return "", err
		}
		text, q.Draft = strings.ReplaceAll(text, "\r\n", "\n"), "" // a slash command leaves the input as it is
		cmd, ok := parseSlash(text)
		command, isCommand := strings.CutPrefix(strings.TrimSpace(text), "!")
		isCommand = isCommand && !q.Secret && !q.Multiline
		switch {
		case q.Kind == AskEdit && !ok:
			return text, nil
		case isCommand && strings.TrimSpace(command) == "":
			s.notify("%s", bangHelp)
		case isCommand && q.Kind == AskCommand:
			return strings.TrimSpace(command), nil
		case isCommand:
			s.runCommand(ctx, strings.TrimSpace(command))
			if q.Kind == AskNextTask {
				return "", errAskAgain
			}
		case !ok:
			return unescape(text), nil
		case cmd.action == actionMultiline:
			q.Multiline = true
		case cmd.action == actionUndo && q.Kind == AskOther:
			s.notifyError("This question already asks that.")
		case cmd.action == actionUndo:
			if err := s.askUndo(ctx, cmd.rest); err != nil {
				return "", err
			}
			if q.Kind == AskNextTask {
				return "", errAskAgain
			}
		case cmd.action == actionNew && s.NoNewReason != "":
			s.notifyError("%s", s.NoNewReason)
		case cmd.action == actionNew:
			s.markNew(cmd.rest)
			return "", s.markQuit()
		case cmd.action == actionQuit:
			return "", s.markQuit()
		default:
			switch changed := s.runSlash(ctx, cmd); {
			case changed && q.Kind == AskConfirm:
				return "", errModeChanged
			case changed && (q.Kind == AskCommand || q.Kind == AskMessage && s.currentMode() == Human):
				return "", nil
			}
		}
	}
}

// askYesNo asks a yes-or-no question until the answer is yes, no or empty.
func (s *Session) askYesNo(ctx context.Context, q Question, defaultYes bool) (bool, error) {
	for {
		text, err := s.ask(ctx, q)
		if err != nil {
			return false, err
		}
		if yes, ok := ask.ParseYesNo(text, defaultYes); ok {
			return yes, nil
		}
		s.notifyError(ask.YesNoHint)
	}
}

// askOnce asks a question once. It first waits until all earlier events have been shown.
func (s *Session) askOnce(ctx context.Context, q Question) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.quit {
		s.mu.Unlock()
		return "", ErrQuit
	}
	s.cancelQuestion, s.interrupting = cancel, false
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.cancelQuestion = nil
		s.mu.Unlock()
	}()
	s.waitUntilShown(ctx)
	text, err := s.Frontend.Ask(ctx, q)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if errors.Is(err, ErrQuit) {
		return "", s.markQuit()
	}
	return "", err
}

// markQuit records that the user has quit, and returns ErrQuit.
func (s *Session) markQuit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quit = true
	return ErrQuit
}

// attemptError maps ErrQuit and ErrInterrupted to agent.ErrInterrupted, which ends the attempt.
func attemptError(err error) error {
	if errors.Is(err, ErrQuit) || errors.Is(err, ErrInterrupted) {
		return agent.ErrInterrupted
	}
	return err
}

// askOrQuit asks a question. After the first Ctrl-C it asks again; a second Ctrl-C in a row
// quits.
func (s *Session) askOrQuit(ctx context.Context, q Question) (string, error) {
	text, err := s.ask(ctx, q)
	if !errors.Is(err, ErrInterrupted) {
		return text, err
	}
	s.notify("Press Ctrl-C again to quit, or answer to continue.")
	text, err = s.ask(ctx, q)
	if errors.Is(err, ErrInterrupted) {
		return "", s.markQuit()
	}
	return text, err
}
