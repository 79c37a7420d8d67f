// Package route distributes the calls of one attempt over several models: at
// random, in a fixed order, or with a fallback when one fails.
//
//	m, err := route.Interleave([]route.Named{{"fast", fast}, {"deep", deep}}, []int{0, 0, 1})
//	reply, err := m.Query(ctx, history)
//	reply.Model // the model that answered
package route

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/minibench/mini/model"
)

// Named is a model with a name, which Reply.Model gets if the provider reports
// none.
type Named struct {
	Name string
	model.Model
}

// Route is a model.Model for one attempt; it is not safe for concurrent use.
type Route struct {
	models []Named
	// madeBy maps ProviderData to the index of the model that made it. Other
	// models cannot read signed thinking and encrypted reasoning.
	madeBy map[string]int
	// next returns the index of the model for the next call.
	next func() int
	// fallBack reports whether to ask the next model after a failure.
	fallBack func(*model.Error) bool
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
	r.fallBack = func(e *model.Error) bool {
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
	var failed model.Reply // totals of the models that failed
	ctx, restart := model.WithRestart(ctx)
	for {
		n := r.next()
		m := r.models[n]
		reply, err := m.Query(ctx, r.messagesFor(messages, n))
		if reply.Model == "" {
			reply.Model = m.Name
		}
		r.remember(reply.Message.ProviderData, n)
		for i := range reply.Requests {
			reply.Requests[i].Model = m.Name
		}
		reply.Requests = append(failed.Requests, reply.Requests...)
		reply.Usage = reply.Usage.Add(failed.Usage)
		reply.Cost += failed.Cost
		reply.Tries += failed.Tries
		reply.Waited += failed.Waited
		e, ok := errors.AsType[*model.Error](err)
		if !ok || ctx.Err() != nil || r.fallBack == nil || !r.fallBack(e) {
			return reply, err
		}
		restart()
		failed = reply
	}
}

// remember records which model made the data, if there is any.
func (r *Route) remember(data []byte, n int) {
	if len(data) == 0 {
		return
	}
	if r.madeBy == nil {
		r.madeBy = map[string]int{}
	}
	r.madeBy[string(data)] = n
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
