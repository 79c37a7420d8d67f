package delegate

import (
	"context"
	"fmt"
	"sync"
)

// lineage says whose child asks. It travels with the context: a tool is the same
// for an attempt and all that descends from it.
type lineage struct {
	child int // 0 is the attempt itself
	depth int
}

type lineageKey struct{}

func (l lineage) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, lineageKey{}, l)
}

func lineageOf(ctx context.Context) lineage {
	l, _ := ctx.Value(lineageKey{}).(lineage)
	return l
}

// state is how many children there were.
type state struct {
	mu   sync.Mutex
	made int
	ask  sync.Mutex // held while a supervisor is asked
}

// admit gives a place to another child, or says why there is none.
func (f *Family) admit(l lineage) error {
	if l.depth >= f.Config.Depth {
		if l.depth == 0 {
			return fmt.Errorf("there are no children here (agents.depth is %d)", f.Config.Depth)
		}
		return fmt.Errorf("a child of depth %d may have no children of its own (agents.depth is %d); do it yourself", l.depth, f.Config.Depth)
	}
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	made := max(f.state.made, f.Journals.Made())
	if made >= f.Config.Max {
		return fmt.Errorf("there were %d children, and no more are allowed (agents.max); do it yourself", made)
	}
	f.state.made = made + 1
	return nil
}
