package agent

import (
	"context"
	"errors"
	"sync"
)

// Talk is how somebody speaks to an attempt while it works: what is said takes
// effect at the next point where the history may grow. One Talk is for one
// session. Its methods are safe for concurrent use and never wait; a nil Talk
// says nothing.
type Talk struct {
	mu        sync.Mutex
	steers    []string
	followUps []string
	ask       []func(context.Context) (string, error) // of interruptions that nobody heard yet
	halt      context.CancelCauseFunc                 // ends the call or the command under way
	abort     context.CancelCauseFunc                 // ends the attempt
	aborted   bool
}

// NewTalk returns a Talk with nothing said.
func NewTalk() *Talk { return &Talk{} }

// errHalted is why a call or a command ends that somebody interrupted.
var errHalted = errors.New("interrupted by the user")

// Steer tells the model something after the command under way and before the
// next call. What was to be followed up is dropped: the person has changed
// their mind.
func (t *Talk) Steer(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steers, t.followUps = append(t.steers, text), nil
}

// FollowUp tells the model something when the attempt would end with a
// submission, which it then does not. Each ending takes one, the oldest first.
func (t *Talk) FollowUp(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followUps = append(t.followUps, text)
}

// Abort ends the attempt in good order, as interrupted.
func (t *Talk) Abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.aborted = true
	if t.abort != nil {
		t.abort(ErrInterrupted)
	}
}

// Interrupt ends the call of the model or the command under way, of which the
// model is told what there is, and then asks for what to tell it. An empty
// message tells it nothing; an error ends the attempt. message is called on the
// attempt's goroutine.
func (t *Talk) Interrupt(message func(ctx context.Context) (string, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ask = append(t.ask, message)
	if t.halt != nil {
		t.halt(errHalted)
	}
}

// attach returns a context that ends when the attempt is aborted. The returned
// function is to be called.
func (t *Talk) attach(ctx context.Context) (context.Context, func()) {
	if t == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.abort = cancel; t.aborted {
		cancel(ErrInterrupted)
	}
	return ctx, func() { cancel(nil) }
}

// begin returns a context for one call or command, which ends when it is
// interrupted. The returned function is to be called.
func (t *Talk) begin(ctx context.Context) (context.Context, func()) {
	if t == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.halt = cancel; len(t.ask) > 0 {
		cancel(errHalted)
	}
	return ctx, func() {
		t.mu.Lock()
		t.halt = nil
		t.mu.Unlock()
		cancel(nil)
	}
}

// halted says whether there is an interruption that the model was not told of.
func (t *Talk) halted() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ask) > 0
}

// heard takes what was said since it was last asked.
func (t *Talk) heard() (ask []func(context.Context) (string, error), steers []string) {
	if t == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ask, steers = t.ask, t.steers
	t.ask, t.steers = nil, nil
	return ask, steers
}

// followUp takes the oldest thing to go on with; "" is none.
func (t *Talk) followUp() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.followUps) == 0 {
		return ""
	}
	next := t.followUps[0]
	t.followUps = t.followUps[1:]
	return next
}
