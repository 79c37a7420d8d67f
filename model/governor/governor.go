// Package governor holds the requests of a process to what an endpoint allows:
// requests and tokens a minute, and requests at once. All workers share the
// governor of their endpoint and are served in the order in which they came.
//
// What is not configured is learned: limits a minute from what the provider
// says beside its answers, requests at once from what it refuses. A provider
// that asks for a pause gets it from all, so that not every worker learns it
// alone.
//
//	g := governors.For(baseURL, key, governor.Config{Concurrent: 8})
//	m := retry.New(g.Model(provider), policy)
package governor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/model"
)

// DefaultMaxPause is what Config.MaxPause means where it is 0.
const DefaultMaxPause = 15 * time.Minute

// Config is what is known beforehand; 0 is not known.
type Config struct {
	Requests, Tokens int64 // a minute
	Concurrent       int   // at once
	// MaxPause bounds the pauses of all. A provider that asks for more is not
	// waited for: the calls end, and say what it asked for.
	MaxPause time.Duration
	// Changed is told when the limit, or a pause, is another one, at most once
	// a second, and when a minute is full for longer than that. It is called by workers, one at a time, and must be quick.
	Changed func(State)
}

// State is what an endpoint lets through at a moment.
type State struct {
	Limit       int // requests at once; 0: no bound is known
	InFlight    int
	Waiting     int
	PausedUntil time.Time // in the past where nothing is paused
	// FullUntil is when there is room again in a minute whose requests or tokens
	// are used up; in the past where there is some.
	FullUntil time.Time
}

// Governor is that of one endpoint. It is safe for concurrent use.
type Governor struct {
	cfg Config

	mu       sync.Mutex
	queue    []*ticket
	inFlight int
	sent     int64 // requests so far
	minute   struct{ requests, tokens window }
	ratio    float64 // of tokens to those estimated, as it was of late
	level    level
	paused   time.Time // until then
	full     time.Time // the minute is, until then
	dry      time.Time // the first refusal since the last answer; zero where there is none
	wake     *time.Timer

	telling sync.Mutex
	told    State
	toldAt  time.Time
}

// New returns the governor of an endpoint.
func New(c Config) *Governor {
	if c.MaxPause <= 0 {
		c.MaxPause = DefaultMaxPause
	}
	g := &Governor{cfg: c, ratio: 1, level: level{most: c.Concurrent, limit: c.Concurrent}}
	g.minute.requests.limit, g.minute.tokens.limit = c.Requests, c.Tokens
	return g
}

// State is what is let through now.
func (g *Governor) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Limit: g.level.limit, InFlight: g.inFlight, Waiting: len(g.queue), PausedUntil: g.paused, FullUntil: g.full}
}

// ticket is the right to one request.
type ticket struct {
	estimate int64 // of its tokens
	begun    time.Time
	number   int64 // from 1
	level    int   // requests in flight when it was let through, with itself
	granted  bool
	ready    chan struct{}
	requests *entry
	tokens   *entry
}

// acquire waits for the turn of a request.
func (g *Governor) acquire(ctx context.Context, estimate int64) (*ticket, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := &ticket{estimate: estimate, begun: model.Begun(ctx), ready: make(chan struct{})}
	g.mu.Lock()
	g.enqueue(t)
	g.dispatch()
	granted := t.granted
	g.mu.Unlock()
	if granted {
		return t, nil
	}
	defer model.Pause(ctx)()
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.granted { // in the same moment
		g.inFlight--
		g.giveBack(t)
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *ticket) bool { return other == t })
	g.dispatch()
	return nil, context.Cause(ctx)
}

// enqueue puts a ticket behind those whose calls began before, so that one that
// is tried again does not start over at the end of the queue. While nothing is
// answered it does: they take turns in finding that out.
func (g *Governor) enqueue(t *ticket) {
	at := len(g.queue)
	for g.dry.IsZero() && at > 0 && t.begun.Before(g.queue[at-1].begun) {
		at--
	}
	g.queue = slices.Insert(g.queue, at, t)
}

// dispatch lets through who may go, the first first. What has to wait for time
// to pass is looked at again then.
func (g *Governor) dispatch() {
	now := time.Now()
	for len(g.queue) > 0 {
		t := g.queue[0]
		if g.level.limit > 0 && g.inFlight >= g.level.limit {
			return // until one is done
		}
		tokens := int64(float64(t.estimate) * g.ratio)
		room := max(g.minute.requests.wait(now, 1), g.minute.tokens.wait(now, tokens))
		if room > 0 {
			g.full = now.Add(room)
		}
		if wait := max(g.paused.Sub(now), room); wait > 0 {
			g.wakeAfter(wait)
			return
		}
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.inFlight++
		g.sent++
		t.number, t.level, t.granted = g.sent, g.inFlight, true
		t.requests = g.minute.requests.add(now, 1)
		t.tokens = g.minute.tokens.add(now, tokens)
		close(t.ready)
	}
}

func (g *Governor) wakeAfter(d time.Duration) {
	if g.wake != nil {
		g.wake.Stop()
	}
	g.wake = time.AfterFunc(d, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.dispatch()
	})
}

// giveBack removes a request that was never sent from the current minute.
func (g *Governor) giveBack(t *ticket) {
	g.minute.requests.correct(t.requests, 0)
	g.minute.tokens.correct(t.tokens, 0)
}

// result is what came of a request.
type result struct {
	answered bool
	refused  bool // for there were too many
	// cancelled is a request whose caller gave it up; sent says whether a part of
	// it had been written to the provider by then.
	cancelled, sent bool
	after           time.Duration
	tokens          int64 // 0 if unknown
	limits          model.Limits
}

// done gives a ticket back.
func (g *Governor) done(t *ticket, r result) {
	g.mu.Lock()
	now := time.Now()
	switch {
	case r.tokens > 0:
		if t.estimate > 0 {
			const weight = 0.1 // of the newest
			g.ratio += weight * (min(max(float64(r.tokens)/float64(t.estimate), 0.1), 10) - g.ratio)
		}
		g.minute.tokens.correct(t.tokens, r.tokens)
	case r.refused:
		g.minute.tokens.correct(t.tokens, 0)
	case r.cancelled && !r.sent:
		g.giveBack(t)
	case r.cancelled:
		// Providers count the prompt of a request as it arrives. The answer was
		// not written.
		g.minute.tokens.correct(t.tokens, min(t.tokens.n, t.estimate))
	}
	g.learn(r.limits)
	if r.answered {
		g.dry = time.Time{}
		g.level.answered(t.level, g.inFlight, len(g.queue) > 0, now)
	}
	g.inFlight--
	if r.refused {
		g.level.refused(t, g.inFlight, g.sent, r.after, now)
		if g.dry.IsZero() {
			g.dry = now
		}
		if until := now.Add(max(r.after, g.drought(now))); r.after <= g.cfg.MaxPause && until.After(g.paused) {
			g.paused = until
		}
	}
	g.dispatch()
	g.mu.Unlock()
	g.tell()
}

// drought is for how long nobody need ask when nothing was answered for a while,
// as in what is left of a minute whose requests are used up: a part of that
// while. What the provider asks for each time may be far too short, and calls
// would use up their tries.
func (g *Governor) drought(now time.Time) time.Duration {
	const part, most = 4, 30 * time.Second
	return min(most, now.Sub(g.dry)/part)
}

// learn takes what the provider says it allows where nothing is configured.
func (g *Governor) learn(l model.Limits) {
	if g.cfg.Requests == 0 && l.Requests > 0 {
		g.minute.requests.limit = l.Requests
	}
	if g.cfg.Tokens == 0 && l.Tokens > 0 {
		g.minute.tokens.limit = l.Tokens
	}
}

// noticeable is how long a full minute keeps everybody waiting before it is told.
const noticeable = 2 * time.Second

// tell tells whoever asked for it. It is called without the lock: what is told
// may look at the state again.
func (g *Governor) tell() {
	if g.cfg.Changed == nil {
		return
	}
	g.telling.Lock()
	defer g.telling.Unlock()
	now, s := time.Now(), g.State()
	full := s.FullUntil.Sub(now) >= noticeable && s.FullUntil.Sub(g.told.FullUntil) >= noticeable
	if !full && (s.Limit == g.told.Limit && !s.PausedUntil.After(g.told.PausedUntil) || now.Sub(g.toldAt) < time.Second) {
		return
	}
	if !full && g.told == (State{}) && s.Limit == g.cfg.Concurrent && s.PausedUntil.IsZero() {
		return // as configured
	}
	g.told, g.toldAt = s, now
	g.cfg.Changed(s)
}
