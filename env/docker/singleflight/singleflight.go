// Package singleflight deduplicates concurrent work, like golang.org/x/sync/singleflight,
// and cancels work that no caller waits for.
package singleflight

import (
	"context"
	"sync"
)

// Group runs work once per key at a time. Concurrent calls with the same key share the
// work. It continues while any caller waits, and is cancelled when the last caller gives
// up; new work for the key may then begin before the cancelled work has returned. No
// goroutine outlives its callers. The zero value is ready for use.
type Group struct {
	mu    sync.Mutex
	calls map[string]*call
}

type call struct {
	waiting int // number of callers
	cancel  context.CancelFunc
	done    chan struct{} // closed once err is set
	err     error
}

// Do returns the result of the work, or the cause of ctx if ctx ends first.
func (g *Group) Do(ctx context.Context, key string, work func(context.Context) error) error {
	c := g.join(ctx, key, work)
	select {
	case <-c.done:
		g.leave(key, c)
		return c.err
	case <-ctx.Done():
		if g.leave(key, c) {
			<-c.done // cancelled; work must return when its context ends
		}
		return context.Cause(ctx)
	}
}

func (g *Group) join(ctx context.Context, key string, work func(context.Context) error) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, ok := g.calls[key]; ok {
		c.waiting++
		return c
	}
	if g.calls == nil {
		g.calls = make(map[string]*call)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &call{waiting: 1, cancel: cancel, done: make(chan struct{})}
	g.calls[key] = c
	go func() { // Do of the last caller waits for it
		defer close(c.done)
		c.err = work(ctx)
	}()
	return c
}

// leave removes a caller from c. If it was the last one, leave cancels c and returns
// true. Later callers do not join a finished or cancelled call.
func (g *Group) leave(key string, c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.waiting--
	finished := false
	select {
	case <-c.done:
		finished = true
	default:
	}
	if (finished || c.waiting == 0) && g.calls[key] == c {
		delete(g.calls, key)
	}
	if c.waiting > 0 {
		return false
	}
	c.cancel()
	return true
}
