package process

import (
	"errors"
	"sync"
)

// ErrOuterEnded is the reason why a nested command ended: the outer command ended.
var ErrOuterEnded = errors.New("outer command has ended")

// Scope identifies a command for nesting. A command with a Scope may have nested
// commands, which run at the same time. Each has its own limits; killing one kills the
// commands nested in it, and nothing else. A Scope belongs to one command.
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
// environment variable of the command, as NAME=value, that no other command has. It
// identifies processes that have left the session and process group of the command; it
// may be empty.
func NewScope(outer *Scope, envMarker string) *Scope {
	return &Scope{outer: outer, envMarker: envMarker, done: make(chan struct{})}
}

// enter registers the start of the command, leave its end.
func (p *Scope) enter() error {
	if p == nil || p.outer == nil {
		return nil
	}
	p.outer.mu.Lock()
	defer p.outer.mu.Unlock()
	if p.outer.ended {
		return ErrOuterEnded
	}
	p.outer.inner.Add(1)
	return nil
}

func (p *Scope) leave() {
	if p == nil {
		return
	}
	p.end(false)
	p.inner.Wait()
	if p.outer != nil {
		p.outer.inner.Done()
	}
}

// isNested reports whether the command is nested in another one.
func (p *Scope) isNested() bool { return p != nil && p.outer != nil }

// outerDone is closed when the outer command ends. It is nil, which blocks forever, if
// the command is not nested.
func (p *Scope) outerDone() <-chan struct{} {
	if !p.isNested() {
		return nil
	}
	return p.outer.done
}

// isOuterKilled reports whether an outer command, at any level, is being killed. A
// command in between may not have noticed yet.
func (p *Scope) isOuterKilled() bool {
	for p.isNested() {
		p = p.outer
		p.mu.Lock()
		killed := p.killed
		p.mu.Unlock()
		if killed {
			return true
		}
	}
	return false
}

// end rejects further nested commands and signals the end to those running.
func (p *Scope) end(killed bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = p.killed || killed
	if !p.ended {
		p.ended = true
		close(p.done)
	}
}

// waitNested waits for the nested commands. It is called after end.
func (p *Scope) waitNested() {
	if p != nil {
		p.inner.Wait()
	}
}

// isWithin reports whether p is q or nested in it.
func (p *Scope) isWithin(q *Scope) bool {
	for ; p != nil; p = p.outer {
		if p == q {
			return true
		}
	}
	return false
}
