package process

import (
	"errors"
	"sync"
)

// ErrOver is why a command ended that ran inside of another one: that is over.
var ErrOver = errors.New("the command that this one ran inside of is over")

// Place is where a command runs, seen from those that run inside of it, or from
// beside them. Each is for one command. Commands inside of one another run at
// the same time; each is bounded by itself, and when it is killed so is what runs
// inside of it, and nothing else.
type Place struct {
	// Outer is where the command runs inside of another one; nil where it runs by
	// itself.
	outer *Place
	mark  string

	mu     sync.Mutex
	over   chan struct{} // closed when the command is over, or about to be killed
	ended  bool
	killed bool           // it is being killed, and all inside with it
	inner  sync.WaitGroup // the commands inside
}

// NewPlace makes a place, inside of outer where that is not nil. mark is a
// variable of the command's, as NAME=value, that no other command has; it may be
// empty, and then what gets away from the command is told from that of others by
// less.
func NewPlace(outer *Place, mark string) *Place {
	return &Place{outer: outer, mark: mark, over: make(chan struct{})}
}

// enter is for the start of the command; leave is for its end.
func (p *Place) enter() error {
	if p == nil || p.outer == nil {
		return nil
	}
	p.outer.mu.Lock()
	defer p.outer.mu.Unlock()
	if p.outer.ended {
		return ErrOver
	}
	p.outer.inner.Add(1)
	return nil
}

func (p *Place) leave() {
	if p == nil {
		return
	}
	p.end(false)
	p.inner.Wait()
	if p.outer != nil {
		p.outer.inner.Done()
	}
}

// nested says that the command runs inside of another one.
func (p *Place) nested() bool { return p != nil && p.outer != nil }

// outerOver is nil, which blocks for ever, for what does not run inside of
// another command.
func (p *Place) outerOver() <-chan struct{} {
	if !p.nested() {
		return nil
	}
	return p.outer.over
}

// outerKilled says that the kill of another command hits this one: of any that it
// is inside of. A command between them may not have noticed yet.
func (p *Place) outerKilled() bool {
	for p.nested() {
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

// end lets nobody in any more, and tells who is inside.
func (p *Place) end(killed bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = p.killed || killed
	if !p.ended {
		p.ended = true
		close(p.over)
	}
}

// empty waits for those inside. end was called.
func (p *Place) empty() {
	if p != nil {
		p.inner.Wait()
	}
}

// within says that p is q or inside of it.
func (p *Place) within(q *Place) bool {
	for ; p != nil; p = p.outer {
		if p == q {
			return true
		}
	}
	return false
}
