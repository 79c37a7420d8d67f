// Package retry is what is done about a provider's failures: what may pass is
// tried again, after growing random waits or as long as the provider asks,
// within bounds. There is one such policy, around any provider; providers make
// one request a Query and say of a failure whether it may pass.
//
//	m := retry.New(provider, retry.Policy{MaxTries: 10, MaxWait: 15 * time.Minute})
//	reply, err := m.Query(ctx, messages) // reply.Attempts has every request
package retry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
)

// What the zero values of a Policy mean, and bounds that are not settings.
const (
	DefaultMaxTries = 10
	DefaultMaxWait  = 15 * time.Minute

	// Most of what fails works the next time, so the first wait is short; what
	// does not has to be outlasted, so the others soon grow long: nine of them
	// are four minutes and more.
	firstWait = 250 * time.Millisecond
	growth    = 3
	longest   = time.Minute // between two tries, where the provider does not say
	// suspectTries bounds the tries of a call whose failure may be a wrong
	// setting, while nothing was ever answered. After the first such call others
	// have one try.
	suspectTries = 4
	// maxError bounds the text of a failure in the record, in bytes.
	maxError = 500
)

// Policy bounds one call.
type Policy struct {
	// MaxTries bounds its requests, the first included.
	MaxTries int
	// MaxWait bounds the time spent between them, all waits together. A
	// provider that asks for more gets no further request, and the failure says
	// what it asked for.
	MaxWait time.Duration
}

// Model is a provider with the policy around it. It is safe for concurrent use
// when the provider is.
type Model struct {
	provider model.Model
	policy   Policy
	answered atomic.Bool // by the provider, at any time
	doubted  atomic.Bool // a call was given up because of its suspect failures
}

var _ model.Model = (*Model)(nil)

// New puts the policy around a provider.
func New(provider model.Model, p Policy) *Model {
	if p.MaxTries <= 0 {
		p.MaxTries = DefaultMaxTries
	}
	if p.MaxWait <= 0 {
		p.MaxWait = DefaultMaxWait
	}
	return &Model{provider: provider, policy: p}
}

// Query implements model.Model. A failure is the last one; a call that ends
// with its context has the context's cause, and the failure that was being
// waited for as text only, for the attempt ended for another reason.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	c := call{waits: backoff.ExponentialBackOff{
		InitialInterval: firstWait, RandomizationFactor: 0.5, Multiplier: growth, MaxInterval: longest,
	}}
	c.waits.Reset()
	ctx, restart := model.Restarts(model.WithBegun(ctx, time.Now()))
	for {
		reply, err := m.attempt(ctx, messages, &c)
		failed, ok := errors.AsType[*model.Error](err)
		switch {
		case err == nil:
			m.answered.Store(true)
			return c.sum(reply), nil
		case ctx.Err() != nil:
			return c.sum(reply), c.interrupted(ctx)
		case !ok:
			return c.sum(reply), err
		}
		wait, reason := m.next(failed, &c)
		if reason != nil {
			return c.sum(reply), reason
		}
		restart() // before the wait: half a reply would stand there for minutes
		if !c.wait(ctx, wait) {
			return c.sum(reply), c.interrupted(ctx)
		}
	}
}

// attempt makes one request and puts it on record.
func (m *Model) attempt(ctx context.Context, messages []model.Message, c *call) (model.Reply, error) {
	begun := time.Now()
	reply, err := m.provider.Query(ctx, messages)
	a := model.Attempt{Queued: reply.Waited, Usage: reply.Usage, Cost: reply.Cost}
	if ctx.Err() == nil || reply.Tries > 0 { // else it may have been given up before it was sent
		a.Start, a.Elapsed = begun.Add(reply.Waited), time.Since(begun)-reply.Waited
	}
	if err != nil {
		a.Error = text.Clip(err.Error(), maxError)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		a.Status, a.Code, a.RetryAfter = e.Status, e.Code, e.RetryAfter
		if ctx.Err() == nil {
			c.last = e
		}
	}
	c.attempts = append(c.attempts, a)
	return reply, err
}

// next is how long to wait before the next try, or why there is none.
func (m *Model) next(e *model.Error, c *call) (time.Duration, error) {
	tries := m.policy.MaxTries
	suspect := e.Suspect && !m.answered.Load()
	switch {
	case suspect && m.doubted.Load():
		tries = 1
	case suspect:
		tries = min(tries, suspectTries)
	}
	if !e.Retryable || len(c.attempts) >= tries {
		if suspect {
			m.doubted.Store(true)
		}
		return 0, c.final(e, "")
	}
	wait := c.waits.NextBackOff()
	if len(c.attempts) == 1 {
		c.least = wait
	}
	switch {
	case e.AtOnce:
		return 0, nil
	case e.RetryAfter > 0:
		if c.asked++; c.asked == 1 {
			wait = 0 // later what was asked for has been too short before
		}
		wait = max(wait, e.RetryAfter)
	case !e.Overloaded():
		wait = max(c.least, wait-c.attempts[len(c.attempts)-1].Elapsed)
	}
	if left := m.policy.MaxWait - c.waited; wait > left {
		return 0, c.final(e, fmt.Sprintf("; the next try would be in %v, and of the time for waits (model.max_wait) %v is left",
			wait.Round(time.Millisecond), left.Round(time.Millisecond)))
	}
	return wait, nil
}

// call is one Query at work.
type call struct {
	waits    backoff.ExponentialBackOff
	attempts []model.Attempt
	least    time.Duration // to wait, where the provider does not say
	asked    int           // how often it did
	waited   time.Duration // between attempts
	last     *model.Error
}

// wait is kept off the attempt's clock; false says that the context ended it.
func (c *call) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	defer model.Pause(ctx)()
	begun := time.Now()
	defer func() {
		took := time.Since(begun)
		c.waited += took
		c.attempts[len(c.attempts)-1].Waited = took
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sum is the last reply with what the whole call took.
func (c *call) sum(reply model.Reply) model.Reply {
	reply.Attempts = c.attempts
	reply.Tries, reply.Waited = 0, c.waited
	reply.Usage, reply.Cost = model.Usage{}, 0
	for _, a := range c.attempts {
		if !a.Start.IsZero() {
			reply.Tries++
		}
		reply.Waited += a.Queued
		reply.Usage = reply.Usage.Add(a.Usage)
		reply.Cost += a.Cost
	}
	return reply
}

func (c *call) interrupted(ctx context.Context) error {
	if c.last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (the model's last failure: %s)", context.Cause(ctx), c.last.Error())
}

// final is the failure that ends the call, with how often it was tried.
func (c *call) final(e *model.Error, more string) error {
	told := *e
	if told.Err == nil {
		told.Err = errors.New("no reason was given")
	}
	if len(c.attempts) > 1 {
		told.Err = fmt.Errorf("%d tries: %w", len(c.attempts), told.Err)
	}
	if more != "" {
		told.Err = fmt.Errorf("%w%s", told.Err, more)
	}
	return &told
}
