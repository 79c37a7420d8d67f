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
