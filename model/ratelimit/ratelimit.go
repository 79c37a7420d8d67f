// Package ratelimit keeps the requests of a process within the limits of an
// endpoint: requests and tokens per minute, and concurrent requests. All workers
// share one Limiter per endpoint. It serves requests by the start of their calls, and
// in order of arrival while the provider refuses all requests.
//
// Limits per minute that are not configured are learned from response headers. If the
// provider refuses one request (status 429, 529, or 503 with Retry-After) with a
// Retry-After of up to Config.MaxPause, all requests wait.
//
//	l := limiters.For(baseURL, key, ratelimit.Config{MaxConcurrent: 8})
//	m := retry.New(l.Wrap(provider), policy)
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
	// MaxPause is the longest Retry-After that pauses all requests; default
	// DefaultMaxPause. A request with a longer one fails without a pause for the
	// others.
	MaxPause time.Duration
	// OnChange is called at the end of a Query if a pause has begun or become
	// longer, at most once a second, and if the requests or
	// tokens per minute are used up for two seconds or more. Calls do not overlap;
	// they must be quick.
	OnChange func(State)
}

// State is a snapshot of a Limiter.
type State struct {
	Limit       int // concurrent requests; 0: none
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
	minute         struct{ requests, tokens window }
	tokenRatio     float64 // moving average of actual to estimated tokens
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
	l := &Limiter{cfg: c, tokenRatio: 1}
	l.minute.requests.limit, l.minute.tokens.limit = c.RequestsPerMinute, c.TokensPerMinute
	return l
}

// State returns the current state.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{Limit: l.cfg.MaxConcurrent, InFlight: l.inFlight, Waiting: len(l.queue), PausedUntil: l.pausedUntil, QuotaFullUntil: l.quotaFullUntil}
}

// ticket is the permission to send one request.
type ticket struct {
	estimate  int64 // tokens
	callStart time.Time
	granted   bool
	ready     chan struct{}
	requests  *entry // in Limiter.minute, as is tokens
	tokens    *entry
}

// acquire waits until a request may be sent.
func (l *Limiter) acquire(ctx context.Context, estimate int64) (*ticket, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := &ticket{estimate: estimate, callStart: model.StartTime(ctx), ready: make(chan struct{})}
	l.mu.Lock()
	l.enqueue(t)
	l.dispatch()
	granted := t.granted
	l.mu.Unlock()
	if granted {
		return t, nil
	}
	defer model.BeginPause(ctx)()
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.granted { // granted while ctx was cancelled
		l.inFlight--
		l.refund(t)
	}
	l.queue = slices.DeleteFunc(l.queue, func(other *ticket) bool { return other == t })
	l.dispatch()
	return nil, context.Cause(ctx)
}

// enqueue inserts a ticket by the start time of its call, so that a retry does not
// go to the end of the queue. While the provider refuses all requests, every ticket
// goes to the end: the calls take turns in probing the endpoint.
func (l *Limiter) enqueue(t *ticket) {
	at := len(l.queue)
	for l.refusedSince.IsZero() && at > 0 && t.callStart.Before(l.queue[at-1].callStart) {
		at--
	}
	l.queue = slices.Insert(l.queue, at, t)
}

// dispatch grants waiting tickets in order. If the first ticket has to wait for a
// pause or for quota, dispatch schedules its next run for that time.
func (l *Limiter) dispatch() {
	now := time.Now()
	for len(l.queue) > 0 {
		t := l.queue[0]
		if l.cfg.MaxConcurrent > 0 && l.inFlight >= l.cfg.MaxConcurrent {
			return // release dispatches again
		}
		tokens := int64(float64(t.estimate) * l.tokenRatio)
		quotaWait := max(l.minute.requests.wait(now, 1), l.minute.tokens.wait(now, tokens))
		if quotaWait > 0 {
			l.quotaFullUntil = now.Add(quotaWait)
		}
		if wait := max(l.pausedUntil.Sub(now), quotaWait); wait > 0 {
			l.dispatchAfter(wait)
			return
		}
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.inFlight++
		t.granted = true
		t.requests = l.minute.requests.add(now, 1)
		t.tokens = l.minute.tokens.add(now, tokens)
		close(t.ready)
	}
}

func (l *Limiter) dispatchAfter(d time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dispatch()
	})
}

// refund removes a request that was never sent from the counts per minute.
func (l *Limiter) refund(t *ticket) {
	l.minute.requests.correct(t.requests, 0)
	l.minute.tokens.correct(t.tokens, 0)
}

// result describes how a request ended.
type result struct {
	answered bool
	refused  bool // the provider reported too many requests
	// cancelled reports that the caller cancelled the request; sent, that a part
	// of it had been written to the provider by then.
	cancelled, sent bool
	retryAfter      time.Duration
	tokens          int64 // 0 if unknown
	rateLimits      model.RateLimits
}

// release ends a request and updates the limits from its result.
func (l *Limiter) release(t *ticket, r result) {
	l.mu.Lock()
	now := time.Now()
	switch {
	case r.tokens > 0:
		if t.estimate > 0 {
			const weight = 0.1 // of the newest sample
			l.tokenRatio += weight * (min(max(float64(r.tokens)/float64(t.estimate), 0.1), 10) - l.tokenRatio)
		}
		l.minute.tokens.correct(t.tokens, r.tokens)
	case r.refused:
		l.minute.tokens.correct(t.tokens, 0)
	case r.cancelled && !r.sent:
		l.refund(t)
	case r.cancelled:
		// Providers count the prompt when it arrives; no answer was generated.
		l.minute.tokens.correct(t.tokens, min(t.tokens.n, t.estimate))
	}
	l.applyRateLimits(r.rateLimits)
	if r.answered {
		l.refusedSince = time.Time{}
	}
	l.inFlight--
	if r.refused {
		if l.refusedSince.IsZero() {
			l.refusedSince = now
		}
		if until := now.Add(max(r.retryAfter, l.refusalPause(now))); r.retryAfter <= l.cfg.MaxPause && until.After(l.pausedUntil) {
			l.pausedUntil = until
		}
	}
	l.dispatch()
	l.mu.Unlock()
	l.notify()
}

// refusalPause returns how long to pause all requests while the provider refuses
// every request: a quarter of the time since the first of these refusals, at most 30
// seconds. The wait that the provider asks for can be far too short, for example when
// the quota of the minute is used up; calls would run out of tries.
func (l *Limiter) refusalPause(now time.Time) time.Duration {
	const divisor, maxPause = 4, 30 * time.Second
	return min(maxPause, now.Sub(l.refusedSince)/divisor)
}

// applyRateLimits adopts the limits that the provider reports, where none is
// configured.
func (l *Limiter) applyRateLimits(reported model.RateLimits) {
	if l.cfg.RequestsPerMinute == 0 && reported.RequestsPerMinute > 0 {
		l.minute.requests.limit = reported.RequestsPerMinute
	}
	if l.cfg.TokensPerMinute == 0 && reported.TokensPerMinute > 0 {
		l.minute.tokens.limit = reported.TokensPerMinute
	}
}

// minNotice is the shortest wait for quota that is reported to OnChange.
const minNotice = 2 * time.Second

// notify calls OnChange if Config.OnChange says so. The caller must not hold mu: OnChange
// may call State.
func (l *Limiter) notify() {
	if l.cfg.OnChange == nil {
		return
	}
	l.notifyMu.Lock()
	defer l.notifyMu.Unlock()
	now, s := time.Now(), l.State()
	full := s.QuotaFullUntil.Sub(now) >= minNotice && s.QuotaFullUntil.Sub(l.notified.QuotaFullUntil) >= minNotice
	if !full && (!s.PausedUntil.After(l.notified.PausedUntil) || now.Sub(l.notifiedAt) < time.Second) {
		return
	}
	l.notified, l.notifiedAt = s, now
	l.cfg.OnChange(s)
}
