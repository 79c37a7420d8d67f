package model

import "context"

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
