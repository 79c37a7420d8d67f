package runner

import (
	"context"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Keeper is a sandbox that can stay when its attempt is done.
type Keeper interface {
	// Keep sees to it that what is in the sandbox outlives it, and says how to
	// get at it. Closing the sandbox is still the caller's.
	Keep(ctx context.Context, attempt int) (how string, err error)
}

// keep lets a sandbox stay that the batch is to keep. What cannot be kept is a
// warning: the attempt has its result.
func (b *Batch) keep(ctx context.Context, box env.Environment, t task, n int, out trajectories.Outcome) {
	if b.Keep == nil || !b.Keep(out) {
		return
	}
	e := t.event(Event{Type: Kept, Attempt: n})
	k, ok := box.(Keeper)
	if !ok {
		e.Type, e.Text = Warning, "this kind of sandbox cannot be kept"
		b.Log.Emit(e)
		return
	}
	how, err := k.Keep(context.WithoutCancel(ctx), n)
	if e.Text = how; err != nil {
		e.Type, e.Text = Warning, "the sandbox could not be kept: "+err.Error()
	} else {
		b.kept.Add(1)
	}
	b.Log.Emit(e)
}
