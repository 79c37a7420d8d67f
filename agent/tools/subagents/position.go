package subagents

import (
	"context"
	"fmt"
	"sync"
)

// position identifies the calling agent in the tree of children. It is carried
// by the context, because an attempt and all its descendants share the same
// tools.
type position struct {
	child int // 0 is the attempt itself
	depth int
}

type positionKey struct{}

func (l position) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, positionKey{}, l)
}

func positionFrom(ctx context.Context) position {
	l, _ := ctx.Value(positionKey{}).(position)
	return l
}

// counters counts the children of an attempt.
type counters struct {
	mu       sync.Mutex
	created  int
	approval sync.Mutex // held while an approver is asked
}

// reserveChild counts a new child, or returns an error if a limit is reached.
func (f *Pool) reserveChild(l position) error {
	if l.depth >= f.Config.Depth {
		if l.depth == 0 {
			return fmt.Errorf("there are no children here (agents.depth is %d)", f.Config.Depth)
		}
		return fmt.Errorf("a child of depth %d may have no children of its own (agents.depth is %d); do it yourself", l.depth, f.Config.Depth)
	}
	f.counters.mu.Lock()
	defer f.counters.mu.Unlock()
	made := max(f.counters.created, f.Journals.LastNumber())
	if made >= f.Config.MaxChildren {
		return fmt.Errorf("there were %d children, and no more are allowed (agents.max); do it yourself", made)
	}
	f.counters.created = made + 1
	return nil
}
