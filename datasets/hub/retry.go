package hub

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	maxTries = 5 // without progress
	// maxWait is the longest pause that is taken on a server's word; the hub
	// counts requests in windows of five minutes.
	maxWait = 6 * time.Minute
)

// fault is a failure that may pass by itself.
type fault struct {
	err   *Error
	after time.Duration // what the server asks to wait; 0 for the usual pause
	dial  bool          // no connection came about
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// plain is the error without the promise that it may pass.
func plain(err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.err
	}
	return err
}

// patience is a backoff.BackOff that is counted anew at each progress.
type patience struct {
	pauses *backoff.ExponentialBackOff
	left   int
}

func newPatience(first time.Duration) *patience {
	return &patience{left: maxTries - 1, pauses: &backoff.ExponentialBackOff{
		InitialInterval: first, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 30 * time.Second,
	}}
}

// NextBackOff implements backoff.BackOff.
func (p *patience) NextBackOff() time.Duration {
	if p.left <= 0 {
		return backoff.Stop
	}
	p.left--
	return p.pauses.NextBackOff()
}

// Reset implements backoff.BackOff. It is called after every Retry-After too,
// which is no progress: the count stays.
func (p *patience) Reset() { p.pauses.Reset() }

func (p *patience) progressed() {
	p.left = maxTries - 1
	p.pauses.Reset()
}

// retry calls op until it succeeds, fails for good, or no try brings progress.
func (h *Hub) retry(ctx context.Context, repo string, op func(*patience) error) error {
	p := newPatience(h.pause)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := op(p)
		f, passing := errors.AsType[*fault](err)
		switch {
		case err == nil:
			return struct{}{}, nil
		case !passing, f.after > maxWait:
			return struct{}{}, backoff.Permanent(err)
		case f.dial && !h.reached.Load():
			p.left = min(p.left, 1) // most likely there is no network: say so soon
		}
		if f.after > 0 {
			err = errors.Join(f, &backoff.RetryAfterError{Duration: f.after})
		}
		return struct{}{}, err
	},
		backoff.WithBackOff(p),
		backoff.WithMaxElapsedTime(0), // bounded by the tries and by the context
		backoff.WithNotify(func(err error, wait time.Duration) {
			h.progress(Progress{Stage: Retrying, Repo: repo, Err: plain(err), Wait: wait})
		}),
	)
	return plain(err)
}
