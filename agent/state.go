package agent

import (
	"context"
	"errors"
	"time"
)

// stateDelay is how long a call of the model lasts before the state of the working
// tree is taken beside it: calls that are answered at once do not wait for it. Of
// all calls it may take one part in stateShare.
var (
	stateDelay = 250 * time.Millisecond
	stateShare = 4
)

// states decides when the state of the working tree is recorded: while a model is
// asked, where that has time to spare.
type states struct {
	left    bool // the last command left processes, which may write at any time
	skip    int  // calls for which it is not taken
	backoff int
}

// maxBackoff bounds the calls that pass before it is tried again.
const maxBackoff = 31

var errAnswered = errors.New("the model has answered")

// takeState begins to take the state of the working tree. What is returned is to be
// called when the model has answered: it gives the hash, or "" where there is none
// by then.
func (r *run) takeState(ctx context.Context) func() string {
	none := func() string { return "" }
	if !r.States || r.tree == nil || r.tree.Base == "" || r.states.left {
		return none
	}
	if r.states.skip > 0 {
		r.states.skip--
		return none
	}
	ctx, cancel := context.WithCancelCause(ctx)
	type taken struct {
		tree  string
		begun bool
		took  time.Duration
	}
	result, asked := make(chan taken, 1), time.Now()
	go func() {
		delay := time.NewTimer(stateDelay)
		defer delay.Stop()
		select {
		case <-ctx.Done():
			result <- taken{}
			return
		case <-delay.C:
		}
		start := time.Now()
		tree, err := r.tree.Hash(ctx)
		if err != nil {
			tree = "" // a lost sandbox is reported by the next command
		}
		result <- taken{tree, true, time.Since(start)}
	}()
	return func() string {
		cancel(errAnswered)
		t := <-result
		switch {
		case t.tree != "":
			r.states.backoff, r.states.skip = 0, min(stateShare*int(t.took)/max(int(time.Since(asked)), 1), maxBackoff)
		case t.begun:
			r.states.backoff = min(2*r.states.backoff+1, maxBackoff)
			r.states.skip = r.states.backoff
		}
		return t.tree
	}
}
