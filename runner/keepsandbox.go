package runner

import (
	"context"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Keeper is a sandbox that can outlive its attempt.
type Keeper interface {
	// Keep preserves the sandbox and returns instructions to access it. The
	// caller must still call Close.
	Keep(ctx context.Context, attempt int) (instructions string, err error)
}

// keepSandbox keeps a sandbox if Batch.KeepSandbox asks for it. It reports a failure
// as a warning, because the attempt already has its result.
func (b *Batch) keepSandbox(ctx context.Context, sandbox env.Environment, t *task, n int, out trajectories.Outcome) {
	if b.KeepSandbox == nil || !b.KeepSandbox(out) {
		return
	}
	e := t.event(Event{Type: SandboxKept, Attempt: n})
	k, ok := sandbox.(Keeper)
	if !ok {
		e.Type, e.Text = Warning, "this kind of sandbox cannot be kept"
		b.Log.Emit(e)
		return
	}
	instructions, err := k.Keep(context.WithoutCancel(ctx), n)
	if e.Text = instructions; err != nil {
		e.Type, e.Text = Warning, "keep sandbox: "+err.Error()
	} else {
		b.keptCount.Add(1)
	}
	b.Log.Emit(e)
}
