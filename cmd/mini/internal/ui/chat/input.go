package chat

import (
	"strings"

	"github.com/minibench/mini/agent"
)

// Input implements InputHandler.
func (s *Session) Input(text string) {
	cmd, ok := parseSlash(text)
	switch {
	case strings.TrimSpace(text) == "":
	case !ok:
		s.Inbox.Steer(unescape(strings.TrimSpace(text)))
		s.notify("The model will get this before its next step.")
	case cmd.action == actionQuit:
		s.Hangup()
	case cmd.action == actionMultiline, cmd.action == actionUndo:
		s.notifyError("%s works only at a question; Ctrl-C interrupts the agent and asks one.", cmd.Name)
	default:
		s.background.Go(func() { s.runSlash(s.ctx, cmd) }) // a diff is slow
	}
}

// Interrupt implements InputHandler. A second interrupt before the question of the first one
// aborts the attempt. At an open question, the answer is ErrInterrupted.
func (s *Session) Interrupt() {
	s.mu.Lock()
	cancelQuestion, second := s.cancelQuestion, s.interrupting
	s.interrupting = cancelQuestion == nil
	s.quit = s.quit || second
	s.mu.Unlock()
	switch {
	case cancelQuestion != nil:
		cancelQuestion(ErrInterrupted)
	case second:
		s.Inbox.Abort()
	default:
		s.notify("Interrupting; press Ctrl-C again to quit.")
		s.Inbox.Interrupt(s.askMessage)
	}
}

// Hangup implements InputHandler: it ends the attempt gracefully; no more questions are asked.
func (s *Session) Hangup() {
	s.mu.Lock()
	s.quit = true
	open := s.cancelQuestion
	s.mu.Unlock()
	s.Inbox.Abort()
	if open != nil {
		open(agent.ErrInterrupted)
	}
}

// HasQuit reports whether the user has quit.
func (s *Session) HasQuit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quit
}
