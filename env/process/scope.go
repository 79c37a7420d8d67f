package process

import (
	"errors"
	"sync"
)

// ErrOuterEnded is the reason why a nested command ended: the outer command ended.
var ErrOuterEnded = errors.New("outer command has ended")

// Scope identifies a command for nesting. A command with a Scope may have nested
// commands, which run at the same time. Each command has its own limits; killing a
// command also kills the commands nested in it, but no others. A Scope belongs to one
// command.
type Scope struct {
	// outer is the scope of the outer command; nil if the command is not nested.
	outer     *Scope
	envMarker string // see NewScope

	mu     sync.Mutex
	done   chan struct{} // closed when the command has ended or is about to be killed
	ended  bool
	killed bool           // the command is being killed, with its nested commands
	inner  sync.WaitGroup // the running nested commands
}

// NewScope returns a scope, nested in outer if that is not nil. envMarker is an
// environment variable of the command, as NAME=value, that no other command has. The
// variable identifies processes that have left the session and process group of the
// command; envMarker may be empty.
func NewScope(outer *Scope, envMarker string) *Scope {
	return &Scope{outer: outer, envMarker: envMarker, done: make(chan struct{})}
}

// enter registers the start of a nested command with the outer command, or returns
// ErrOuterEnded. The caller calls leave when the command has ended.
func (s *Scope) enter() error {
	if s == nil || s.outer == nil {
		return nil
	}
	s.outer.mu.Lock()
	defer s.outer.mu.Unlock()
	if s.outer.ended {
		return ErrOuterEnded
	}
	s.outer.inner.Add(1)
	return nil
}

func (s *Scope) leave() {
	if s == nil {
		return
	}
	s.end(false)
	s.inner.Wait()
	if s.outer != nil {
		s.outer.inner.Done()
	}
}

// isNested reports whether the command is nested in another one.
func (s *Scope) isNested() bool { return s != nil && s.outer != nil }

// outerDone returns a channel that is closed when the outer command ends; nil, which
// blocks forever, if the command is not nested.
func (s *Scope) outerDone() <-chan struct{} {
	if !s.isNested() {
		return nil
	}
	return s.outer.done
}

// isOuterKilled reports whether an outer command, at any level, is being killed. A
// command in between may not have noticed yet.
func (s *Scope) isOuterKilled() bool {
	for s.isNested() {
		s = s.outer
		s.mu.Lock()
		killed := s.killed
		s.mu.Unlock()
		if killed {
			return true
		}
	}
	return false
}

// end ends the running nested commands and rejects further ones. killed says that the
// command is being killed.
func (s *Scope) end(killed bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = s.killed || killed
	if !s.ended {
		s.ended = true
		close(s.done)
	}
}

// waitNested waits for the nested commands. It is called after end.
func (s *Scope) waitNested() {
	if s != nil {
		s.inner.Wait()
	}
}

// isWithin reports whether s is outer or nested in it.
func (s *Scope) isWithin(outer *Scope) bool {
	for ; s != nil; s = s.outer {
		if s == outer {
			return true
		}
	}
	return false
}
