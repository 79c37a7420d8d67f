package chat

import (
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// Input implements InputHandler.
func (s *Session) Input(text string) {
	cmd, ok := parseSlash(text)
	switch {
	case strings.TrimSpace(text) == "":
	case strings.HasPrefix(strings.TrimSpace(text), "!"):
		s.notifyError("!COMMAND works only at a question; Ctrl-C interrupts the agent and asks one.")
	case !ok && s.isNew():
		s.markNew(unescape(strings.TrimSpace(text)))
		s.notify("This is the task of the new conversation.")
	case !ok:
		s.Inbox.Steer(unescape(strings.TrimSpace(text)))
		s.notify("The model will get this before its next step.")
	case cmd.action == actionNew && s.NoNewReason != "":
		s.notifyError("%s", s.NoNewReason)
	case cmd.action == actionNew:
		s.markNew(cmd.rest)
		s.Hangup()
	case cmd.action == actionQuit:
		s.Hangup()
	case cmd.action == actionMultiline, cmd.action == actionUndo:
		s.notifyError("%s works only at a question; Ctrl-C interrupts the agent and asks one.", cmd.Name)
	default:
		s.background.Go(func() { s.runSlash(s.ctx, cmd) }) // Input must not block, and /diff may be slow
	}
}

// Interrupt implements InputHandler. It interrupts the agent, which then asks for a message to
// the model; a second interrupt before that question aborts the attempt. If any question is
// open, Interrupt withdraws it with ErrInterrupted instead. If a command of the user runs, Interrupt
// ends only that. In a pager, Ctrl-C is the pager's.
func (s *Session) Interrupt() {
	if terminal.IsPagerOpen() {
		return
	}
	s.mu.Lock()
	if s.cancelCommand != nil {
		s.cancelCommand()
		s.mu.Unlock()
		return
	}
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

// Hangup implements InputHandler. It ends the attempt gracefully and without further questions.
func (s *Session) Hangup() {
	s.mu.Lock()
	s.quit = true
	cancelQuestion := s.cancelQuestion
	if s.cancelCommand != nil {
		s.cancelCommand()
	}
	s.mu.Unlock()
	s.Inbox.Abort()
	if cancelQuestion != nil {
		cancelQuestion(agent.ErrInterrupted)
	}
}

// markNew records that the user wants a new conversation after this one, and adds text to its
// task.
func (s *Session) markNew(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wantsNew = true
	s.newTask = strings.TrimSpace(s.newTask + "\n" + text)
}

func (s *Session) isNew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wantsNew
}

// WantsNew reports whether the user has ended the session to begin a new conversation, with which
// task, which may be empty, and in which mode.
func (s *Session) WantsNew() (task string, mode Mode, wants bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newTask, s.state.Mode, s.wantsNew
}

// setDecided records that the user has ended the session after a submission.
func (s *Session) setDecided() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decided = true
}

func (s *Session) hasDecided() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decided
}

// HasQuit reports whether the user has quit.
func (s *Session) HasQuit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quit
}
