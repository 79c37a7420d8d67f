package agent

import (
	"context"
	"sync"
	"time"

	"github.com/minibench/mini/model"
)

// checkLimits returns an error if a limit of the attempt is reached, or that of budget,
// which checks the budget of the run and may be nil.
func (r *run) checkLimits(budget func() error) error {
	limit := r.cfg.wallTime()
	switch spent := r.total(); {
	case limitReached(r.limits, spent.Steps, spent.Cost):
		return ErrLimitsExceeded
	case limit > 0 && r.clock.elapsed() >= limit:
		return ErrTimeExceeded
	case budget != nil:
		return budget()
	}
	return nil
}

// limitReached reports whether the totals have reached a limit.
func limitReached(l Limits, steps int, cost model.Cost) bool {
	return l.Steps > 0 && steps >= l.Steps || l.Cost > 0 && float64(cost) >= l.Cost
}

func (c Config) wallTime() time.Duration {
	return time.Duration(c.WallTimeLimit * float64(time.Second))
}

// clock measures the working time of an attempt. It is paused while the attempt
// waits for the model's provider, an approval or the user.
type clock struct {
	started  time.Time
	previous time.Duration // working time of the attempt's earlier sessions
	limit    time.Duration // 0 means none
	expired  func()        // called once when the limit is reached

	mu       sync.Mutex
	pauses   int // number of pauses in effect
	pausedAt time.Time
	paused   time.Duration // total of past pauses
	timer    *time.Timer
	stopped  bool
}

func newClock() *clock { return &clock{started: time.Now()} }

// withLimit returns a context that is cancelled with cause once the clock has
// measured limit; 0 means no limit. The caller must call the returned function.
func (c *clock) withLimit(ctx context.Context, limit time.Duration, cause error) (context.Context, func()) {
	ctx = model.WithPause(ctx, c.pause)
	if limit <= 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	c.expired = func() { cancel(cause) }
	c.restart()
	return ctx, func() {
		c.mu.Lock()
		c.stopped = true
		c.timer.Stop()
		c.mu.Unlock()
		cancel(nil)
	}
}

// elapsed returns the working time so far, without pauses.
func (c *clock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsedLocked()
}

func (c *clock) elapsedLocked() time.Duration {
	elapsed := c.previous + time.Since(c.started) - c.paused
	if c.pauses > 0 {
		elapsed -= time.Since(c.pausedAt)
	}
	return elapsed
}

// pause stops the clock until the returned function is called.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 {
		c.pausedAt = time.Now()
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pauses--; c.pauses == 0 {
			c.paused += time.Since(c.pausedAt)
			c.restart()
		}
	})
}

// restart sets the timer to the remaining time.
func (c *clock) restart() {
	if c.limit <= 0 || c.stopped {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(c.limit-c.elapsedLocked(), c.expire)
}

// expire checks the time again: a pause may have started as the timer fired.
func (c *clock) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped && c.pauses == 0 && c.elapsedLocked() >= c.limit {
		c.expired()
	}
}

// withClockPaused calls question while the clocks of the attempt and of its
// parents are paused.
func withClockPaused[T any](ctx context.Context, question func() (T, error)) (T, error) {
	defer model.BeginPause(ctx)()
	return question()
}
