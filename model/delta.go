package model

import "context"

// Delta is a part of a reply that is still being generated. Deltas arrive in
// order. The joined deltas of a Query may differ from its Reply; the Reply is
// authoritative.
type Delta struct {
	Text      string
	Reasoning string // the model's thinking, where the provider shows it
	// Restart reports that all deltas so far are void: the request is retried,
	// another model is asked, or the server starts its stream again. A Delta with
	// Restart has no text.
	Restart bool
}

// deltaListenerKey is the context key of the function set by WithDeltas.
type deltaListenerKey struct{}

// WithDeltas returns a context that makes Query call listener with each Delta, if
// the provider streams. Query's goroutine calls listener, never after Query has
// returned; a slow listener delays the reply. API keys are redacted from
// the deltas, also keys that several deltas contain parts of. If listener is nil, WithDeltas returns ctx.
func WithDeltas(ctx context.Context, listener func(Delta)) context.Context {
	if listener == nil {
		return ctx
	}
	return context.WithValue(ctx, deltaListenerKey{}, listener)
}

// DeltaListener returns the function set by WithDeltas, or nil.
func DeltaListener(ctx context.Context) func(Delta) {
	listener, _ := ctx.Value(deltaListenerKey{}).(func(Delta))
	return listener
}

// WithRestart is for models that may send several requests per Query. Send the
// requests with the returned context, and call restart before each further
// request: it voids the deltas sent so far, if there are any.
func WithRestart(ctx context.Context) (within context.Context, restart func()) {
	listener := DeltaListener(ctx)
	if listener == nil {
		return ctx, func() {}
	}
	sent := false
	within = WithDeltas(ctx, func(d Delta) {
		sent = d.Text != "" || d.Reasoning != "" || sent && !d.Restart
		listener(d)
	})
	return within, func() {
		if sent {
			sent = false
			listener(Delta{Restart: true})
		}
	}
}
