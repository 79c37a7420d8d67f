// Package flight lets those who want the same piece of work share one run of it.
package flight

import (
	"context"
	"sync"
)

// Group runs a piece of work once per key at a time, however many ask for
// it. The work outlives a caller that gives up, as long as another waits, and
// is cancelled when the last one leaves; no goroutine outlives its callers. The
// zero value is ready for use.
type Group struct {
	mu  sync.Mutex
	now map[string]*flight
}

type flight struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed once err is set
	err     error
}

// Do returns the outcome of the work, or the cause when ctx ends before it.
func (f *Group) Do(ctx context.Context, key string, work func(context.Context) error) error {
	fl := f.join(ctx, key, work)
	select {
	case <-fl.done:
		f.leave(key, fl)
		return fl.err
	case <-ctx.Done():
		if f.leave(key, fl) {
			<-fl.done // it was cancelled; work honours that
		}
		return context.Cause(ctx)
	}
}

func (f *Group) join(ctx context.Context, key string, work func(context.Context) error) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl, ok := f.now[key]; ok {
		fl.waiting++
		return fl
	}
	if f.now == nil {
		f.now = make(map[string]*flight)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	fl := &flight{waiting: 1, cancel: cancel, done: make(chan struct{})}
	f.now[key] = fl
	go func() { // awaited by the last to leave
		defer close(fl.done)
		fl.err = work(ctx)
	}()
	return fl
}

// leave reports whether the caller was the last. A finished or abandoned
// flight takes no more passengers: who comes later starts anew.
func (f *Group) leave(key string, fl *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.waiting--
	finished := false
	select {
	case <-fl.done:
		finished = true
	default:
	}
	if (finished || fl.waiting == 0) && f.now[key] == fl {
		delete(f.now, key)
	}
	if fl.waiting > 0 {
		return false
	}
	fl.cancel()
	return true
}
