// Package route lets several models answer the calls of one attempt: one at
// random each time, in a fixed order, or the next where one fails.
//
//	m := route.Interleave([]route.Named{{"fast", fast}, {"deep", deep}}, []int{0, 0, 1})
//	reply, err := m.Query(ctx, history)
//	reply.Model // who answered
package route

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/minibench/mini/model"
)

// Named is a model, and what replies are signed with where its provider does
// not say.
type Named struct {
	Name string
	model.Model
}

// Route is a model.Model for one attempt; it is not safe for concurrent use.
type Route struct {
	models []Named
	// made is who made what a provider wants back unchanged, which nobody else
	// can read: thinking with a signature, encrypted reasoning.
	made map[string]int
	// pick is who is asked first at the next call.
	pick func() int
	// passOn says whether a failure is handed to the next model.
	passOn func(*model.Error) bool
}

var _ model.Model = (*Route)(nil)

// Roulette asks one of the models at random. Equal seeds give equal choices.
func Roulette(models []Named, seed uint64) *Route {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a choice that can be repeated, not a secret
	return &Route{models: models, pick: func() int { return r.IntN(len(models)) }}
}

// Interleave asks the models in the order of a sequence of their indices, from
// the beginning again when it ends; an empty one takes each in turn.
func Interleave(models []Named, sequence []int) (*Route, error) {
	if len(sequence) == 0 {
		for i := range models {
			sequence = append(sequence, i)
		}
	}
	for _, i := range sequence {
		if i < 0 || i >= len(models) {
			return nil, fmt.Errorf("sequence: %d is none of the %d models, which begin with 0", i, len(models))
		}
	}
	call := -1
	return &Route{models: models, pick: func() int {
		call++
		return sequence[call%len(sequence)]
	}}, nil
}

// Fallback asks the first model until it fails with one of these, then the
// next, and so on to the last, whose failure is that of the call. It does not go
// back: who failed once would let every later call wait for it again. Without
// statuses every failure of a provider is meant, and nothing that is the model's
// own doing.
func Fallback(models []Named, on ...model.Status) *Route {
	if len(on) == 0 {
		on = []model.Status{model.AuthenticationError, model.RateLimited, model.ProviderError, model.BadRequest}
	}
	current := 0
	r := &Route{models: models, pick: func() int { return current }}
	r.passOn = func(e *model.Error) bool {
		if current == len(models)-1 || !slices.Contains(on, e.Status) {
			return false
		}
		current++
		return true
	}
	return r
}

// Query implements model.Model.
func (r *Route) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	var before model.Reply // what those who failed took
	ctx, restart := model.Restarts(ctx)
	for {
		n := r.pick()
		m := r.models[n]
		reply, err := m.Query(ctx, r.readable(messages, n))
		if reply.Model == "" {
			reply.Model = m.Name
		}
		if kept := reply.Message.Kept; len(kept) > 0 {
			if r.made == nil {
				r.made = map[string]int{}
			}
			r.made[string(kept)] = n
		}
		for i := range reply.Attempts {
			reply.Attempts[i].Model = m.Name
		}
		reply.Attempts = append(before.Attempts, reply.Attempts...)
		reply.Usage = reply.Usage.Add(before.Usage)
		reply.Cost += before.Cost
		reply.Tries += before.Tries
		reply.Waited += before.Waited
		failed, ok := errors.AsType[*model.Error](err)
		if !ok || ctx.Err() != nil || r.passOn == nil || !r.passOn(failed) {
			return reply, err
		}
		restart()
		before = reply
	}
}

// readable are the messages as a model can take them: without what another one
// wants back.
func (r *Route) readable(messages []model.Message, n int) []model.Message {
	foreign := func(m model.Message) bool {
		maker, ok := r.made[string(m.Kept)]
		return len(m.Kept) > 0 && ok && maker != n
	}
	if !slices.ContainsFunc(messages, foreign) {
		return messages
	}
	messages = slices.Clone(messages)
	for i := range messages {
		if foreign(messages[i]) {
			messages[i].Kept = nil
		}
	}
	return messages
}
