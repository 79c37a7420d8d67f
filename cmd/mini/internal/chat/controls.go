package chat

import (
	"strings"

	"github.com/minibench/mini/agent"
)

// Input implements Controls.
func (s *Session) Input(text string) {
	slash, isSlash := parse(text)
	switch {
	case strings.TrimSpace(text) == "":
	case !isSlash:
		s.Talk.Steer(unescaped(strings.TrimSpace(text)))
		s.tell("The model is told before its next step.")
	case slash.act == actLeave:
		s.Hangup()
	case slash.act == actMulti, slash.act == actUndo:
		s.complain("%s is for questions; Ctrl-C interrupts what runs, and asks one.", slash.Name)
	default:
		s.work.Go(func() { s.obey(s.life, slash) }) // a diff takes its time
	}
}

// Interrupt implements Controls. A second one before the first had its question
// ends the attempt. At a question it is the answer ErrInterrupt.
func (s *Session) Interrupt() {
	s.mu.Lock()
	open, again := s.open, s.halting
	s.halting = open == nil
	s.left = s.left || again
	s.mu.Unlock()
	switch {
	case open != nil:
		open(ErrInterrupt)
	case again:
		s.Talk.Abort()
	default:
		s.tell("Interrupting; Ctrl-C once more leaves.")
		s.Talk.Interrupt(s.interrupted)
	}
}

// Hangup implements Controls: nothing is asked any more, and the attempt ends in
// good order.
func (s *Session) Hangup() {
	s.mu.Lock()
	s.left = true
	open := s.open
	s.mu.Unlock()
	s.Talk.Abort()
	if open != nil {
		open(agent.ErrInterrupted)
	}
}

// Leaving says that nothing is asked any more.
func (s *Session) Leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}
