package subagents

import (
	"context"
	"fmt"
	"sync"
)

// position identifies the calling agent in the tree of children. The context of
// a tool call carries it, because an attempt and all its descendants share the
// same tools.
type position struct {
	child int // 0 is the attempt itself
	depth int // 0 in the attempt itself
}

type positionKey struct{}

func (p position) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, positionKey{}, p)
}

func positionFrom(ctx context.Context) position {
	p, _ := ctx.Value(positionKey{}).(position)
	return p
}

// counters counts the children of an attempt and serializes their approvals.
type counters struct {
	mu         sync.Mutex
	created    int
	approvalMu sync.Mutex // held while an approver is asked
}

// reserveChild counts a new child, or returns an error if a limit is reached.
func (p *Pool) reserveChild(caller position) error {
	if caller.depth >= p.Config.Depth {
		if caller.depth == 0 {
			return fmt.Errorf("there are no children here (agents.depth is %d)", p.Config.Depth)
		}
		return fmt.Errorf("a child of depth %d may have no children of its own (agents.depth is %d); do it yourself", caller.depth, p.Config.Depth)
	}
	p.counters.mu.Lock()
	defer p.counters.mu.Unlock()
	created := max(p.counters.created, p.Journals.LastNumber())
	if created >= p.Config.MaxChildren {
		return fmt.Errorf("there were %d children, and no more are allowed (agents.max); do it yourself", created)
	}
	p.counters.created = created + 1
	return nil
}
