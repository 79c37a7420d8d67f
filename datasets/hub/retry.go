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

// maxPause bounds the pauses, which double.
const maxPause = 30 * time.Second

// retry calls op until it succeeds, fails for good, or no try brings progress,
// of which op tells.
func (h *Hub) retry(ctx context.Context, repo string, op func(progressed func()) error) error {
	left, pause := maxTries-1, h.pause
	progressed := func() { left, pause = maxTries-1, h.pause }
	for {
		err := op(progressed)
		f, passing := errors.AsType[*fault](err)
		if !passing {
			return err
		}
		if f.dial && !h.reached.Load() {
			left = min(left, 1) // most likely there is no network: say so soon
		}
		if f.after > maxWait || left <= 0 {
			return f.err
		}
		left--
		wait := cmp.Or(f.after, time.Duration(float64(pause)*(0.5+rand.Float64()))) //nolint:gosec // not a secret
		pause = min(2*pause, maxPause)
		h.progress(Progress{Stage: Retrying, Repo: repo, Err: f.err, Wait: wait})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
