package evaluate

import "sync"

// turns lets one worker at a time work under a name: of two that have the same
// patch, the second finds the verdict of the first.
type turns struct {
	mu   sync.Mutex
	held map[string]*turn
}

type turn struct {
	mu   sync.Mutex
	wait int // who has it, and who waits for it
}

// take waits for the turn of a name; leave gives it up.
func (t *turns) take(name string) (leave func()) {
	t.mu.Lock()
	if t.held == nil {
		t.held = map[string]*turn{}
	}
	mine := t.held[name]
	if mine == nil {
		mine = &turn{}
		t.held[name] = mine
	}
	mine.wait++
	t.mu.Unlock()
	mine.mu.Lock()
	return func() {
		mine.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.wait--; mine.wait == 0 {
			delete(t.held, name)
		}
	}
}
