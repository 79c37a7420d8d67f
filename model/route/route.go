// Package route distributes the calls of one attempt over several models: at
// random, in a fixed order, with a fallback when one fails, or as the user chooses.
//
//	m, err := route.Interleave([]route.Named{{"fast", fast}, {"deep", deep}}, []int{0, 0, 1})
//	reply, err := m.Query(ctx, history)
//	reply.Model // the model that answered
package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/minibench/mini/model"
)

// Named is a model with a name, which Reply.Model gets if there are several models and
// the provider reports none.
type Named struct {
	Name string
	model.Model
}

// Route is a model.Model for one attempt and its subagents.
type Route struct {
	// OnDrop is called for each model of Set that is dropped; may be nil.
	OnDrop func(dropped, used Named, err error)

	mu     sync.Mutex
	models []Named
	// madeBy maps ProviderData to the index of the model that made it. Other
	// models cannot read signed thinking and encrypted reasoning.
	madeBy map[string]int
	// next returns the index of the model for the next call. It is called with mu held.
	next func() int
	// fallBack reports whether to ask another model after a failure of model n; may be nil.
	fallBack func(n int, e *model.Error) bool
	answered int // highest index of a model that has answered
}

var _ model.Model = (*Route)(nil)

// Roulette asks a random model each time. Equal seeds give equal choices.
func Roulette(models []Named, seed uint64) *Route {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the choices must be repeatable; they are no secret
	return &Route{models: models, next: func() int { return r.IntN(len(models)) }}
}

// Interleave asks the models in the order of sequence, a list of indices that
// repeats. With an empty sequence it asks each model in turn.
func Interleave(models []Named, sequence []int) (*Route, error) {
	if len(sequence) == 0 {
		for i := range models {
			sequence = append(sequence, i)
		}
	}
	for _, i := range sequence {
		if i < 0 || i >= len(models) {
			return nil, fmt.Errorf("sequence: index %d is out of range; want 0 to %d", i, len(models)-1)
		}
	}
	call := -1
	return &Route{models: models, next: func() int {
		call++
		return sequence[call%len(sequence)]
	}}, nil
}

// Fallback asks the first model until it fails with one of the statuses in on,
// then the next, and so on. If the last model fails, so does the call. Fallback
// never returns to an earlier model, since every later call would wait for it to
// fail again. If on is empty, Fallback reacts to all failures of providers, but not
// to those that the agent's conversation causes.
func Fallback(models []Named, on ...model.Status) *Route {
	if len(on) == 0 {
		on = []model.Status{model.AuthenticationError, model.RateLimited, model.ProviderError, model.BadRequest}
	}
	current := 0
	r := &Route{models: models, next: func() int { return current }}
	r.fallBack = func(n int, e *model.Error) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n == len(models)-1 || !slices.Contains(on, e.Status) {
			return false
		}
		current = max(current, n+1)
		return true
	}
	return r
}

// Single asks one model until Set replaces it. A model of Set that refuses its first
// call, because of its name or its key, is dropped, and the model before it answers.
func Single(first Named) *Route {
	r := &Route{models: []Named{first}}
	r.next = func() int { return len(r.models) - 1 }
	r.fallBack = r.drop
	return r
}

// Set replaces the model of a Route made by Single for later calls. A call under way is
// not affected.
func (r *Route) Set(next Named) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.models = append(r.models, next)
}

// drop drops model n if it is the last one, has never answered, and e is a refusal.
func (r *Route) drop(n int, e *model.Error) bool {
	r.mu.Lock()
	if e.Status != model.AuthenticationError && e.Status != model.BadRequest || n != len(r.models)-1 || n <= r.answered {
		r.mu.Unlock()
		return false
	}
	dropped, used := r.models[n], r.models[n-1]
	r.models = r.models[:n]
	r.mu.Unlock()
	if r.OnDrop != nil {
		r.OnDrop(dropped, used, e)
	}
	return true
}

// Query implements model.Model.
func (r *Route) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	var failed model.Reply // totals of the models that failed
	ctx, restart := model.WithRestart(ctx)
	for {
		r.mu.Lock()
		n := r.next()
		m, sent := r.models[n], r.messagesFor(messages, n)
		r.mu.Unlock()
		reply, err := m.Query(ctx, sent)
		if r.ended(n, reply, err) {
			reply.Model = cmp.Or(reply.Model, m.Name)
			for i := range reply.Requests {
				reply.Requests[i].Model = m.Name
			}
		}
		reply.Requests = append(failed.Requests, reply.Requests...)
		reply.Usage = reply.Usage.Add(failed.Usage)
		reply.Cost += failed.Cost
		reply.Tries += failed.Tries
		reply.Waited += failed.Waited
		e, ok := errors.AsType[*model.Error](err)
		if !ok || ctx.Err() != nil || r.fallBack == nil || !r.fallBack(n, e) {
			return reply, err
		}
		restart()
		failed = reply
	}
}

// ended records that a call of model n has ended, and which model made its
// ProviderData. It reports whether there are several models.
func (r *Route) ended(n int, reply model.Reply, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.answered = max(r.answered, n)
	}
	if data := reply.Message.ProviderData; len(data) > 0 {
		if r.madeBy == nil {
			r.madeBy = map[string]int{}
		}
		r.madeBy[string(data)] = n
	}
	return len(r.models) > 1
}

// messagesFor returns the messages for model n, without the ProviderData of other
// models.
func (r *Route) messagesFor(messages []model.Message, n int) []model.Message {
	foreign := func(m model.Message) bool {
		maker, ok := r.madeBy[string(m.ProviderData)]
		return len(m.ProviderData) > 0 && ok && maker != n
	}
	if !slices.ContainsFunc(messages, foreign) {
		return messages
	}
	messages = slices.Clone(messages)
	for i := range messages {
		if foreign(messages[i]) {
			messages[i].ProviderData = nil
		}
	}
	return messages
}
