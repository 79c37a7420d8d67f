package agent

import (
	"context"
	"errors"
	"time"
)

// The working tree is hashed only during model calls longer than hashDelay, so
// that short calls do not wait for it. Calls are skipped so that hashing takes
// at most about 1/hashTimeShare of the time of all calls.
var (
	hashDelay     = 250 * time.Millisecond
	hashTimeShare = 4
)

// hashSchedule decides during which model calls the working tree is hashed.
type hashSchedule struct {
	processesLeft bool // the last command left processes running, which may write at any time
	skip          int  // number of calls to skip
	backoff       int  // number of calls skipped after the last unfinished hash; 0 after a finished one
}

// maxBackoff bounds the number of calls to skip.
const maxBackoff = 31

var errAnswered = errors.New("the model has answered")

// startTreeHash starts hashing the working tree. The caller calls the returned
// function when the model has answered. That function returns the hash, or ""
// if there is none by then.
func (r *run) startTreeHash(ctx context.Context) func() string {
	none := func() string { return "" }
	if !r.RecordTreeHashes || r.tree == nil || r.tree.Base == "" || r.hashSchedule.processesLeft {
		return none
	}
	if r.hashSchedule.skip > 0 {
		r.hashSchedule.skip--
		return none
	}
	ctx, cancel := context.WithCancelCause(ctx)
	type hashResult struct {
		tree     string
		started  bool
		duration time.Duration
	}
	result, callStart := make(chan hashResult, 1), time.Now()
	go func() {
		delay := time.NewTimer(hashDelay)
		defer delay.Stop()
		select {
		case <-ctx.Done():
			result <- hashResult{}
			return
		case <-delay.C:
		}
		start := time.Now()
		tree, err := r.tree.Hash(ctx)
		if err != nil {
			tree = "" // the next command reports a lost sandbox
		}
		result <- hashResult{tree, true, time.Since(start)}
	}()
	return func() string {
		cancel(errAnswered)
		t := <-result
		switch {
		case t.tree != "":
			r.hashSchedule.backoff, r.hashSchedule.skip = 0, min(hashTimeShare*int(t.duration)/max(int(time.Since(callStart)), 1), maxBackoff)
		case t.started:
			r.hashSchedule.backoff = min(2*r.hashSchedule.backoff+1, maxBackoff)
			r.hashSchedule.skip = r.hashSchedule.backoff
		}
		return t.tree
	}
}
