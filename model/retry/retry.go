// Package retry wraps a model and repeats failed requests, after growing random
// waits or as long as the provider asks, within bounds. It is the only retry
// policy: providers send one request per Query and report whether a failure is
// retryable.
//
//	m := retry.New(provider, retry.Policy{MaxTries: 10, MaxWait: 15 * time.Minute})
//	reply, err := m.Query(ctx, messages) // reply.Requests describes each request
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

// Defaults of Policy, and bounds that are not configurable.
const (
	DefaultMaxTries = 10
	DefaultMaxWait  = 15 * time.Minute

	// Most failures are over at once, so the first wait is short. Outages last, so
	// the waits soon grow: nine of them take about four and a half minutes.
	firstWait  = 250 * time.Millisecond
	growth     = 3
	maxBackoff = time.Minute // longest wait without Retry-After, before randomization by ±50%
	// misconfiguredTries bounds the tries if the failure may come from a wrong
	// setting and no request has ever succeeded. After the first call that failed
	// like this, calls get one try.
	misconfiguredTries = 4
	// maxError bounds the recorded text of a failure, in bytes, before "...".
	maxError = 500
)

// Policy bounds the retries of one call.
type Policy struct {
	// MaxTries bounds the requests, including the first; default DefaultMaxTries.
	MaxTries int
	// MaxWait bounds the sum of the waits between requests; default DefaultMaxWait.
	// If the next wait would exceed it, the call fails, with that wait in the error.
	MaxWait time.Duration
}

// Model wraps a provider with a retry policy. It is safe for concurrent use if
// the provider is.
type Model struct {
	provider model.Model
	policy   Policy
	answered atomic.Bool // a call has succeeded
	gaveUp   atomic.Bool // a call has failed, maybe because of a wrong setting
}

var _ model.Model = (*Model)(nil)

// New wraps provider with a policy.
func New(provider model.Model, p Policy) *Model {
	if p.MaxTries <= 0 {
		p.MaxTries = DefaultMaxTries
	}
	if p.MaxWait <= 0 {
		p.MaxWait = DefaultMaxWait
	}
	return &Model{provider: provider, policy: p}
}

// Query implements model.Model. Its error is that of the last request. If ctx
// ends, the error wraps ctx's cause; it contains the last failure as text only,
// since that failure did not end the attempt.
func (m *Model) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	c := call{backoff: backoff.ExponentialBackOff{
		InitialInterval: firstWait, RandomizationFactor: 0.5, Multiplier: growth, MaxInterval: maxBackoff,
	}}
	c.backoff.Reset()
	ctx, restart := model.WithRestart(model.WithStartTime(ctx, time.Now()))
	for {
		start := time.Now()
		reply, err := m.provider.Query(ctx, messages)
		c.record(ctx, start, reply, err)
		failed, ok := errors.AsType[*model.Error](err)
		switch {
		case err == nil:
			m.answered.Store(true)
			return c.total(reply), nil
		case ctx.Err() != nil:
			return c.total(reply), c.cancelled(ctx)
		case !ok:
			return c.total(reply), err
		}
		wait, finalErr := m.nextWait(failed, &c)
		if finalErr != nil {
			return c.total(reply), finalErr
		}
		restart() // before the wait, so that listeners do not show half a reply for minutes
		model.ReportRetry(ctx, model.Retry{Err: failed, Try: len(c.requests) + 1, MaxTries: m.policy.MaxTries, Wait: wait})
		if !c.wait(ctx, wait) {
			return c.total(reply), c.cancelled(ctx)
		}
	}
}

// nextWait returns how long to wait before the next try, or an error to give up.
func (m *Model) nextWait(e *model.Error, c *call) (time.Duration, error) {
	tries := m.policy.MaxTries
	misconfigured := e.MaybeMisconfigured && !m.answered.Load()
	switch {
	case misconfigured && m.gaveUp.Load():
		tries = 1
	case misconfigured:
		tries = min(tries, misconfiguredTries)
	}
	if !e.Retryable || len(c.requests) >= tries {
		if misconfigured {
			m.gaveUp.Store(true)
		}
		return 0, c.giveUp(e, "")
	}
	wait := c.backoff.NextBackOff()
	if len(c.requests) == 1 {
		c.minWait = wait
	}
	switch {
	case e.RetryNow:
		return 0, nil
	case e.RetryAfter > 0:
		if c.retryAfters++; c.retryAfters == 1 {
			wait = 0 // from the second time on, the requested wait has proved too short
		}
		wait = max(wait, e.RetryAfter)
	case !e.IsOverloaded():
		wait = max(c.minWait, wait-c.requests[len(c.requests)-1].Elapsed)
	}
	if remaining := m.policy.MaxWait - c.waited; wait > remaining {
		return 0, c.giveUp(e, fmt.Sprintf("; the next try is due in %v, and %v of model.max_wait are left",
			wait.Round(time.Millisecond), remaining.Round(time.Millisecond)))
	}
	return wait, nil
}

// call is the state of one Query.
type call struct {
	backoff     backoff.ExponentialBackOff
	requests    []model.Request
	minWait     time.Duration // shortest wait without Retry-After
	retryAfters int           // responses with Retry-After
	waited      time.Duration // between requests
	last        *model.Error  // last failure of a request
}

// record adds a request that has ended.
func (c *call) record(ctx context.Context, start time.Time, reply model.Reply, err error) {
	request := model.Request{Queued: reply.Waited, Usage: reply.Usage, Cost: reply.Cost}
	if ctx.Err() == nil || reply.Tries > 0 { // otherwise the request may not have been sent
		request.Start, request.Elapsed = start.Add(reply.Waited), time.Since(start)-reply.Waited
	}
	if err != nil {
		request.Error = text.Clip(err.Error(), maxError)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		request.Status, request.HTTPStatus, request.RetryAfter = e.Status, e.HTTPStatus, e.RetryAfter
		if ctx.Err() == nil {
			c.last = e
		}
	}
	c.requests = append(c.requests, request)
}

// wait waits for d, as a pause that does not count for the attempt's time limit. It
// returns false if ctx ended first.
func (c *call) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	defer model.BeginPause(ctx)()
	start := time.Now()
	defer func() {
		took := time.Since(start)
		c.waited += took
		c.requests[len(c.requests)-1].Waited = took
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

// total returns reply with the totals of all requests.
func (c *call) total(reply model.Reply) model.Reply {
	reply.Requests = c.requests
	reply.Tries, reply.Waited = 0, c.waited
	reply.Usage, reply.Cost = model.Usage{}, 0
	for _, request := range c.requests {
		if !request.Start.IsZero() {
			reply.Tries++
		}
		reply.Waited += request.Queued
		reply.Usage = reply.Usage.Add(request.Usage)
		reply.Cost += request.Cost
	}
	return reply
}

// cancelled returns the error of a call whose ctx has ended.
func (c *call) cancelled(ctx context.Context) error {
	if c.last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (the model's last failure: %s)", context.Cause(ctx), c.last.Error())
}

// giveUp returns the error that ends the call, with the number of tries and detail.
func (c *call) giveUp(e *model.Error, detail string) error {
	final := *e
	if final.Err == nil {
		final.Err = errors.New("unknown cause")
	}
	if len(c.requests) > 1 {
		final.Err = fmt.Errorf("%d tries: %w", len(c.requests), final.Err)
	}
	if detail != "" {
		final.Err = fmt.Errorf("%w%s", final.Err, detail)
	}
	return &final
}
