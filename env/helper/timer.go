package helper

import (
	"sync"
	"time"
)

// forever is a very long time that can be extended without overflow.
const forever = 1 << 60

// PausableTimer is the timer of a command. It is paused while tool requests of the
// command are handled, except while the timer of a nested command runs. Its methods
// are safe for concurrent use.
type PausableTimer struct {
	outer *PausableTimer // of the outer command; may be nil
	timer *time.Timer
	mu    *sync.Mutex // shared with all outer and nested timers

	pauses    int // number of running tool requests
	nested    int // number of running nested timers
	running   bool
	stopped   bool
	expiry    time.Time     // while running
	remaining time.Duration // while paused
}

// NewPausableTimer starts a timer of duration d, or without expiry if d is not
// positive. outer may be nil.
func NewPausableTimer(d time.Duration, outer *PausableTimer) *PausableTimer {
	if d <= 0 {
		d = forever
	}
	c := &PausableTimer{outer: outer, timer: time.NewTimer(d), remaining: d}
	if outer == nil {
		c.mu = &sync.Mutex{}
	} else {
		c.mu = outer.mu
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.update()
	return c
}

// C returns the channel that delivers a value when the timer expires.
func (c *PausableTimer) C() <-chan time.Time { return c.timer.C }

// Pause pauses the timer until resume is called. Further calls of resume have no
// effect.
func (c *PausableTimer) Pause() (resume func()) {
	c.change(&c.pauses, 1)
	return sync.OnceFunc(func() { c.change(&c.pauses, -1) })
}

// Extend adds d to the remaining time, even if the timer has expired.
func (c *PausableTimer) Extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		c.remaining += d
		return
	}
	c.expiry = latest(c.expiry, time.Now()).Add(d)
	c.timer.Reset(time.Until(c.expiry))
}

// Remaining returns the remaining time; zero if the timer has expired.
func (c *PausableTimer) Remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return c.remaining
	}
	return max(0, time.Until(c.expiry))
}

// Stop stops the timer for good.
func (c *PausableTimer) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.update()
}

func (c *PausableTimer) change(count *int, delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*count += delta
	c.update()
}

// update starts or pauses the timer according to its state. The caller holds the lock.
func (c *PausableTimer) update() {
	running := !c.stopped && (c.pauses == 0 || c.nested > 0)
	if running == c.running {
		return
	}
	c.running = running
	delta := 1
	if running {
		c.expiry = time.Now().Add(c.remaining)
		c.timer.Reset(c.remaining)
	} else {
		c.timer.Stop()
		c.remaining = max(0, time.Until(c.expiry))
		delta = -1
	}
	if c.outer != nil {
		c.outer.nested += delta
		c.outer.update()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
