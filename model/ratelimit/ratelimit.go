// Package ratelimit keeps the requests of a process within the limits of an
// endpoint: requests and tokens per minute, and concurrent requests. All workers
// share one Limiter per endpoint and are served in order of arrival.
//
// Limits that are not configured are learned: limits per minute from response
// headers, concurrency from refusals (status 429, 529, or 503 with Retry-After).
// If the provider asks one request to wait, all requests wait.
//
//	l := limiters.For(baseURL, key, ratelimit.Config{MaxConcurrent: 8})
//	m := retry.New(l.Model(provider), policy)
package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/model"
)

// DefaultMaxPause is the default of Config.MaxPause.
const DefaultMaxPause = 15 * time.Minute

// Config holds the known limits; 0 means unknown.
type Config struct {
	RequestsPerMinute, TokensPerMinute int64 // per minute
	MaxConcurrent                      int
	// MaxPause bounds how long all requests are paused when the provider asks
	// for it. If it asks for more, the calls fail with its answer instead.
	MaxPause time.Duration
	// OnChange is called when the limit or a pause changes, at most once a
	// second, and when the quota of a minute is used up for longer than that.
	// Workers call it, one at a time; it must be quick.
	OnChange func(State)
}

// State is a snapshot of a Limiter.
type State struct {
	Limit       int // concurrent requests; 0: no limit is known
	InFlight    int
	Waiting     int
	PausedUntil time.Time // in the past if not paused
	// QuotaFullUntil is when the requests or tokens per minute have room again;
	// in the past if they have room now.
	QuotaFullUntil time.Time
}

// Limiter limits the requests to one endpoint. It is safe for concurrent use.
type Limiter struct {
	cfg Config

	mu             sync.Mutex
	queue          []*ticket
	inFlight       int
	sent           int64
	minute         struct{ requests, tokens window }
	tokenRatio     float64 // moving average of actual to estimated tokens
	concurrency    concurrency
	pausedUntil    time.Time
	quotaFullUntil time.Time // requests or tokens per minute are used up until then
	refusedSince   time.Time // the first refusal since the last answer; zero if there is none
	timer          *time.Timer

	notifyMu   sync.Mutex
	notified   State
	notifiedAt time.Time
}

// New returns a Limiter for one endpoint.
func New(c Config) *Limiter {
	if c.MaxPause <= 0 {
		c.MaxPause = DefaultMaxPause
	}
	g := &Limiter{cfg: c, tokenRatio: 1, concurrency: concurrency{configured: c.MaxConcurrent, limit: c.MaxConcurrent}}
	g.minute.requests.limit, g.minute.tokens.limit = c.RequestsPerMinute, c.TokensPerMinute
	return g
}

// State returns the current state.
func (g *Limiter) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Limit: g.concurrency.limit, InFlight: g.inFlight, Waiting: len(g.queue), PausedUntil: g.pausedUntil, QuotaFullUntil: g.quotaFullUntil}
}

// ticket is the permission to send one request.
type ticket struct {
	estimate  int64 // tokens
	callStart time.Time
	seq       int64 // sequence number, from 1
	inFlight  int   // requests in flight when it was granted, including itself
	granted   bool
	ready     chan struct{}
	requests  *entry
	tokens    *entry
}

// acquire waits until a request may be sent.
func (g *Limiter) acquire(ctx context.Context, estimate int64) (*ticket, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := &ticket{estimate: estimate, callStart: model.StartTime(ctx), ready: make(chan struct{})}
	g.mu.Lock()
	g.enqueue(t)
	g.dispatch()
	granted := t.granted
	g.mu.Unlock()
	if granted {
		return t, nil
	}
	defer model.BeginPause(ctx)()
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.granted { // granted while ctx was cancelled
		g.inFlight--
		g.refund(t)
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *ticket) bool { return other == t })
	g.dispatch()
	return nil, context.Cause(ctx)
}

// enqueue inserts a ticket by the start time of its call, so that a retry does not
// go to the end of the queue. While all requests are refused it does go to the
// end: the calls take turns in probing the endpoint.
func (g *Limiter) enqueue(t *ticket) {
	at := len(g.queue)
	for g.refusedSince.IsZero() && at > 0 && t.callStart.Before(g.queue[at-1].callStart) {
		at--
	}
	g.queue = slices.Insert(g.queue, at, t)
}

// dispatch grants waiting tickets in order. If the first one has to wait for time
// to pass, dispatch runs again at that time.
func (g *Limiter) dispatch() {
	now := time.Now()
	for len(g.queue) > 0 {
		t := g.queue[0]
		if g.concurrency.limit > 0 && g.inFlight >= g.concurrency.limit {
			return // release dispatches again
		}
		tokens := int64(float64(t.estimate) * g.tokenRatio)
		room := max(g.minute.requests.wait(now, 1), g.minute.tokens.wait(now, tokens))
		if room > 0 {
			g.quotaFullUntil = now.Add(room)
		}
		if wait := max(g.pausedUntil.Sub(now), room); wait > 0 {
			g.dispatchAfter(wait)
			return
		}
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.inFlight++
		g.sent++
		t.seq, t.inFlight, t.granted = g.sent, g.inFlight, true
		t.requests = g.minute.requests.add(now, 1)
		t.tokens = g.minute.tokens.add(now, tokens)
		close(t.ready)
	}
}

func (g *Limiter) dispatchAfter(d time.Duration) {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer = time.AfterFunc(d, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.dispatch()
	})
}

// refund removes a request that was never sent from the counts per minute.
func (g *Limiter) refund(t *ticket) {
	g.minute.requests.correct(t.requests, 0)
	g.minute.tokens.correct(t.tokens, 0)
}

// result is the result of a request.
type result struct {
	answered bool
	refused  bool // the provider reported too many requests
	// cancelled reports that the caller cancelled the request; sent whether any
	// part of it had been written to the provider by then.
	cancelled, sent bool
	retryAfter      time.Duration
	tokens          int64 // 0 if unknown
	rateLimits      model.RateLimits
}

// release ends a request and updates the limits from its result.
func (g *Limiter) release(t *ticket, r result) {
	g.mu.Lock()
	now := time.Now()
	switch {
	case r.tokens > 0:
		if t.estimate > 0 {
			const weight = 0.1 // of the newest sample
			g.tokenRatio += weight * (min(max(float64(r.tokens)/float64(t.estimate), 0.1), 10) - g.tokenRatio)
		}
		g.minute.tokens.correct(t.tokens, r.tokens)
	case r.refused:
		g.minute.tokens.correct(t.tokens, 0)
	case r.cancelled && !r.sent:
		g.refund(t)
	case r.cancelled:
		// Providers count the prompt when it arrives; no answer was generated.
		g.minute.tokens.correct(t.tokens, min(t.tokens.n, t.estimate))
	}
	g.applyRateLimits(r.rateLimits)
	if r.answered {
		g.refusedSince = time.Time{}
		g.concurrency.onAnswered(t.inFlight, g.inFlight, len(g.queue) > 0, now)
	}
	g.inFlight--
	if r.refused {
		g.concurrency.onRefused(t, g.inFlight, g.sent, r.retryAfter, now)
		if g.refusedSince.IsZero() {
			g.refusedSince = now
		}
		if until := now.Add(max(r.retryAfter, g.refusalPause(now))); r.retryAfter <= g.cfg.MaxPause && until.After(g.pausedUntil) {
			g.pausedUntil = until
		}
	}
	g.dispatch()
	g.mu.Unlock()
	g.notify()
}

// refusalPause returns how long to pause all requests while every request is
// refused: a fraction of the time since the first of these refusals. The wait that the
// provider asks for can be far too short, for example when the quota of the
// minute is used up, and calls would run out of tries.
func (g *Limiter) refusalPause(now time.Time) time.Duration {
	const divisor, maxPause = 4, 30 * time.Second
	return min(maxPause, now.Sub(g.refusedSince)/divisor)
}

// applyRateLimits adopts the limits that the provider reports, where none is
// configured.
func (g *Limiter) applyRateLimits(l model.RateLimits) {
	if g.cfg.RequestsPerMinute == 0 && l.RequestsPerMinute > 0 {
		g.minute.requests.limit = l.RequestsPerMinute
	}
	if g.cfg.TokensPerMinute == 0 && l.TokensPerMinute > 0 {
		g.minute.tokens.limit = l.TokensPerMinute
	}
}

// minNotice is the shortest full quota that is reported to OnChange.
const minNotice = 2 * time.Second

// notify calls OnChange. It must not hold mu: OnChange may call State.
func (g *Limiter) notify() {
	if g.cfg.OnChange == nil {
		return
	}
	g.notifyMu.Lock()
	defer g.notifyMu.Unlock()
	now, s := time.Now(), g.State()
	full := s.QuotaFullUntil.Sub(now) >= minNotice && s.QuotaFullUntil.Sub(g.notified.QuotaFullUntil) >= minNotice
	if !full && (s.Limit == g.notified.Limit && !s.PausedUntil.After(g.notified.PausedUntil) || now.Sub(g.notifiedAt) < time.Second) {
		return
	}
	if !full && g.notified == (State{}) && s.Limit == g.cfg.MaxConcurrent && s.PausedUntil.IsZero() {
		return // unchanged from the configuration
	}
	g.notified, g.notifiedAt = s, now
	g.cfg.OnChange(s)
}
