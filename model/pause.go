package model

import (
	"context"
	"time"
)

// pauseKey is where a context has the clock that waits are kept off.
type pauseKey struct{}

// WithPause returns a context whose calls say when they wait for the provider
// and do not work: begin is called as a wait begins, and what it returns as the
// wait ends. Waits of one context may overlap.
func WithPause(ctx context.Context, begin func() (end func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, begin)
}

// Pause tells the context's owner, if it asked, that a wait begins. The
// returned function tells of its end, and is called once.
func Pause(ctx context.Context) (end func()) {
	if begin, ok := ctx.Value(pauseKey{}).(func() (end func())); ok {
		return begin()
	}
	return func() {}
}

// begunKey is where a context has the time at which its call began.
type begunKey struct{}

// WithBegun returns the context of a call that began at a time: its second
// request has waited for its turn since the first.
func WithBegun(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, begunKey{}, at)
}

// Begun is when the call began to which a request belongs: now, where nobody
// said.
func Begun(ctx context.Context) time.Time {
	if at, ok := ctx.Value(begunKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}
