package images

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// turns spreads pulls over time: all pulls share one rate, and a registry that
// asked to be left alone is.
type turns struct {
	limiter *rate.Limiter // nil where nothing bounds pulls

	mu    sync.Mutex
	until map[string]time.Time // registry -> when it may be asked again
}

func newTurns(perMinute float64) *turns {
	t := &turns{until: map[string]time.Time{}}
	if perMinute > 0 {
		t.limiter = rate.NewLimiter(rate.Limit(perMinute/60), 1)
	}
	return t
}

// pause leaves a registry alone for so long.
func (t *turns) pause(registry string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(d); until.After(t.until[registry]) {
		t.until[registry] = until
	}
}

// paused is how long a registry is still to be left alone.
func (t *turns) paused(registry string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.until[registry])
}

// turn waits until a pull may begin. Pulls that somebody waits for go first:
// one that is only ahead of its time begins when nobody waits for another.
func (s *Store) turn(ctx context.Context, name, platform string) error {
	registry := registryOf(name)
	taken := false
	for {
		if d := s.turns.paused(registry); d > 0 {
			if err := await(ctx, nil, d); err != nil {
				return err
			}
			continue
		}
		if taken || s.turns.limiter == nil && s.urgent(name, platform) {
			return ctx.Err()
		}
		if s.urgent(name, platform) {
			r := s.turns.limiter.Reserve()
			if err := await(ctx, nil, r.Delay()); err != nil {
				r.Cancel()
				return err
			}
			taken = true
			continue // it may have been paused meanwhile
		}
		idle := false
		changed := s.look(func() { idle = len(s.wanted) == 0 })
		if idle && (s.turns.limiter == nil || s.turns.limiter.Allow()) {
			return ctx.Err()
		}
		wait := time.Hour
		if idle { // only the rate is in the way
			wait = max(time.Duration(float64(time.Second)/float64(s.turns.limiter.Limit()))/4, 10*time.Millisecond)
		}
		if err := await(ctx, changed, wait); err != nil {
			return err
		}
	}
}
