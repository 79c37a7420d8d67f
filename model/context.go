package model

import (
	"context"
	"time"
)

// pauseKey is the context key of the function set by WithPause.
type pauseKey struct{}

// WithPause returns a context whose model calls report their waits for the
// provider. A call invokes begin when a wait starts, and the returned end when the
// wait is over. Waits may overlap. The begin of an outer WithPause is also called.
func WithPause(ctx context.Context, begin func() (end func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, func() func() {
		outer, end := BeginPause(ctx), begin()
		return func() { end(); outer() }
	})
}

// BeginPause reports the start of a wait to the function set by WithPause. The
// caller must call end once when the wait is over.
func BeginPause(ctx context.Context) (end func()) {
	if begin, ok := ctx.Value(pauseKey{}).(func() (end func())); ok {
		return begin()
	}
	return func() {}
}

// startTimeKey is the context key of the time set by WithStartTime.
type startTimeKey struct{}

// WithStartTime returns a context for the requests of a call that started at
// the given time. The rate limiter queues a retry by this time.
func WithStartTime(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, startTimeKey{}, at)
}

// StartTime returns the time set by WithStartTime; without one, the current time.
func StartTime(ctx context.Context) time.Time {
	if at, ok := ctx.Value(startTimeKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}

// Retry is a request that is sent again after a wait.
type Retry struct {
	Err      error // failure of the request before
	Try      int   // number of the next request, from 2
	MaxTries int
	Wait     time.Duration
}

// retryKey is the context key of the function set by WithRetries.
type retryKey struct{}

// WithRetries returns a context whose model calls report their retries, each before
// its wait.
func WithRetries(ctx context.Context, report func(Retry)) context.Context {
	return context.WithValue(ctx, retryKey{}, report)
}

// ReportRetry calls the function set by WithRetries.
func ReportRetry(ctx context.Context, r Retry) {
	if report, ok := ctx.Value(retryKey{}).(func(Retry)); ok {
		report(r)
	}
}

// Delta is a part of a reply that is still being generated. Deltas arrive in
// order. The joined deltas of a Query may differ from its Reply; the Reply is
// authoritative.
type Delta struct {
	Text      string
	Reasoning string // the model's thinking, where the provider shows it
	// Restart reports that all deltas so far are void: the request is retried,
	// another model is asked, or the server starts its stream again. A Delta with
	// Restart has no text.
	Restart bool
}

// deltaListenerKey is the context key of the function set by WithDeltas.
type deltaListenerKey struct{}

// WithDeltas returns a context that makes Query call listener with each Delta, if
// the provider streams. Query's goroutine calls listener, never after Query has
// returned; a slow listener delays the reply. API keys are redacted from
// the deltas, also keys that several deltas contain parts of. If listener is nil, WithDeltas returns ctx.
func WithDeltas(ctx context.Context, listener func(Delta)) context.Context {
	if listener == nil {
		return ctx
	}
	return context.WithValue(ctx, deltaListenerKey{}, listener)
}

// DeltaListener returns the function set by WithDeltas, or nil.
func DeltaListener(ctx context.Context) func(Delta) {
	listener, _ := ctx.Value(deltaListenerKey{}).(func(Delta))
	return listener
}

// WithRestart is for models that may send several requests per Query. Send the
// requests with the returned context, and call restart before each further
// request: it voids the deltas sent so far, if there are any.
func WithRestart(ctx context.Context) (within context.Context, restart func()) {
	listener := DeltaListener(ctx)
	if listener == nil {
		return ctx, func() {}
	}
	sent := false
	within = WithDeltas(ctx, func(d Delta) {
		sent = d.Text != "" || d.Reasoning != "" || sent && !d.Restart
		listener(d)
	})
	return within, func() {
		if sent {
			sent = false
			listener(Delta{Restart: true})
		}
	}
}
