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
	// maxWait is the longest delay that a server may ask for; retry gives up on longer
	// ones. The hub limits requests in any five minutes.
	maxWait = 6 * time.Minute
)

// transientError is a failure after which a retry may succeed.
type transientError struct {
	err   *Error
	after time.Duration // delay that the server asked for; 0 if none
	dial  bool          // no connection was established
}

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// permanentError returns the underlying *Error of a transientError, and other errors as
// they are.
func permanentError(err error) error {
	if transient, ok := errors.AsType[*transientError](err); ok {
		return transient.err
	}
	return err
}

// maxBackoff limits the delays, which double, before their randomization by ±50%.
const maxBackoff = 30 * time.Second

// retry calls op until it succeeds, fails with a permanent error, fails maxTries times
// without progress (twice if no connection can be established and none was before), or the
// server asks for a delay of more than maxWait. op reports progress by calling its argument.
func (h *Hub) retry(ctx context.Context, repo string, op func(progressed func()) error) error {
	triesLeft, backoff := maxTries-1, h.firstBackoff
	progressed := func() { triesLeft, backoff = maxTries-1, h.firstBackoff }
	for {
		err := op(progressed)
		transient, ok := errors.AsType[*transientError](err)
		if !ok {
			return err
		}
		if transient.dial && !h.reached.Load() {
			triesLeft = min(triesLeft, 1) // there is probably no network: fail soon
		}
		if transient.after > maxWait || triesLeft <= 0 {
			return transient.err
		}
		triesLeft--
		random := time.Duration(float64(backoff) * (0.5 + rand.Float64())) //nolint:gosec // not a secret
		wait := cmp.Or(transient.after, random)
		backoff = min(2*backoff, maxBackoff)
		h.progress(Progress{Stage: Retrying, Repo: repo, Err: transient.err, Wait: wait})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
