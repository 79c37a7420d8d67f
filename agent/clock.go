package agent

import (
	"context"
	"sync"
	"time"

	"github.com/minibench/mini/model"
)

// clock counts the time of an attempt. It stands still while the attempt waits
// for its model's provider, whose bad day is not the agent's doing.
type clock struct {
	started time.Time
	before  time.Duration // counted in earlier sessions of the attempt
	limit   time.Duration // 0: none
	expired func()        // called once, when the limit is reached

	mu      sync.Mutex
	waits   int // that go on
	since   time.Time
	waited  time.Duration // in waits that are over
	timer   *time.Timer
	stopped bool
}

func newClock() *clock { return &clock{started: time.Now()} }

// bound returns a context that ends with the cause when the clock has counted
// so much; 0 is no limit. Stop is to be called.
func (c *clock) bound(ctx context.Context, limit time.Duration, cause error) (context.Context, func()) {
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

// worked is the time so far without the waits.
func (c *clock) worked() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count()
}

func (c *clock) count() time.Duration {
	worked := c.before + time.Since(c.started) - c.waited
	if c.waits > 0 {
		worked -= time.Since(c.since)
	}
	return worked
}

// pause stops the clock until the returned function is called.
func (c *clock) pause() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits++; c.waits == 1 {
		c.since = time.Now()
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waits--; c.waits == 0 {
			c.waited += time.Since(c.since)
			c.restart()
		}
	})
}

// restart lets the timer run for what is left.
func (c *clock) restart() {
	if c.limit <= 0 || c.stopped {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(c.limit-c.count(), c.expire)
}

// expire looks again: a wait may have begun as the timer went off.
func (c *clock) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped && c.waits == 0 && c.count() >= c.limit {
		c.expired()
	}
}
