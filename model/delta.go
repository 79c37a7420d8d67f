package model

import "context"

// Delta is a piece of a reply that is being written, in the order in which it
// comes. What is joined of the pieces of a Query need not be its Reply to the
// letter: that is what counts.
type Delta struct {
	Text      string
	Reasoning string // what the model thinks, where the provider shows it
	// Restart says that the pieces until now are void, as the model is asked
	// again, or another one; it stands before the texts.
	Restart bool
}

// deltasKey is where a context has who listens.
type deltasKey struct{}

// WithDeltas returns a context whose calls tell of replies piece by piece, as
// far as the provider streams. listen is called by the goroutine of Query, never
// after that has returned, and holds up the reply while it runs. No piece has a
// key in it, nor do two together. A nil listen changes nothing.
func WithDeltas(ctx context.Context, listen func(Delta)) context.Context {
	if listen == nil {
		return ctx
	}
	return context.WithValue(ctx, deltasKey{}, listen)
}

// Deltas is who listens to the calls of a context, nil where nobody does.
func Deltas(ctx context.Context) func(Delta) {
	listen, _ := ctx.Value(deltasKey{}).(func(Delta))
	return listen
}

// Restarts is for those who ask a model more than once within a call. With the
// context that it returns the model is asked; restart, called before it is asked
// again, makes void what was told of the reply, if anything was.
func Restarts(ctx context.Context) (within context.Context, restart func()) {
	listen := Deltas(ctx)
	if listen == nil {
		return ctx, func() {}
	}
	told := false
	within = WithDeltas(ctx, func(d Delta) {
		told = d.Text != "" || d.Reasoning != "" || told && !d.Restart
		listen(d)
	})
	return within, func() {
		if told {
			told = false
			listen(Delta{Restart: true})
		}
	}
}
