package hub

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	maxTries = 5 // without progress
	// maxWait is the longest delay that a server may ask for; the hub limits requests per
	// five minutes.
	maxWait = 6 * time.Minute
)

// transientError is a failure that may not occur again.
type transientError struct {
	err   *Error
	after time.Duration // delay that the server asked for; 0 if none
	dial  bool          // no connection was established
}

func (f *transientError) Error() string { return f.err.Error() }
func (f *transientError) Unwrap() error { return f.err }

// permanentError returns the underlying *Error of a transientError.
func permanentError(err error) error {
	if f, ok := errors.AsType[*transientError](err); ok {
		return f.err
	}
	return err
}

// maxBackoff limits the delays, which double.
const maxBackoff = 30 * time.Second

// retry calls op until it succeeds, fails with a permanent error, or fails maxTries times
// without progress. op reports progress by calling its argument.
func (h *Hub) retry(ctx context.Context, repo string, op func(progressed func()) error) error {
	left, pause := maxTries-1, h.pause
	progressed := func() { left, pause = maxTries-1, h.pause }
	for {
		err := op(progressed)
		f, passing := errors.AsType[*transientError](err)
		if !passing {
			return err
		}
		if f.dial && !h.reached.Load() {
			left = min(left, 1) // there is probably no network: fail soon
		}
		if f.after > maxWait || left <= 0 {
			return f.err
		}
		left--
		wait := cmp.Or(f.after, time.Duration(float64(pause)*(0.5+rand.Float64()))) //nolint:gosec // not a secret
		pause = min(2*pause, maxBackoff)
		h.progress(Progress{Stage: Retrying, Repo: repo, Err: f.err, Wait: wait})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
