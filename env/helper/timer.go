package helper

import (
	"sync"
	"time"
)

// forever is a very long duration that can be extended without overflow.
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
	t := &PausableTimer{outer: outer, timer: time.NewTimer(d), remaining: d}
	if outer == nil {
		t.mu = &sync.Mutex{}
	} else {
		t.mu = outer.mu
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.update()
	return t
}

// C returns the channel that delivers a value when the timer expires.
func (t *PausableTimer) C() <-chan time.Time { return t.timer.C }

// Pause pauses the timer until resume is called. Further calls of resume have no
// effect.
func (t *PausableTimer) Pause() (resume func()) {
	t.change(&t.pauses, 1)
	return sync.OnceFunc(func() { t.change(&t.pauses, -1) })
}

// Extend adds d to the remaining time, even if the timer has expired.
func (t *PausableTimer) Extend(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.running {
		t.remaining += d
		return
	}
	t.expiry = latest(t.expiry, time.Now()).Add(d)
	t.timer.Reset(time.Until(t.expiry))
}

// Remaining returns the remaining time; zero if the timer has expired.
func (t *PausableTimer) Remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.running {
		return t.remaining
	}
	return max(0, time.Until(t.expiry))
}

// Stop stops the timer for good.
func (t *PausableTimer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.update()
}

func (t *PausableTimer) change(count *int, delta int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*count += delta
	t.update()
}

// update starts or pauses the timer according to its state. The caller holds the lock.
func (t *PausableTimer) update() {
	running := !t.stopped && (t.pauses == 0 || t.nested > 0)
	if running == t.running {
		return
	}
	t.running = running
	delta := 1
	if running {
		t.expiry = time.Now().Add(t.remaining)
		t.timer.Reset(t.remaining)
	} else {
		t.timer.Stop()
		t.remaining = max(0, time.Until(t.expiry))
		delta = -1
	}
	if t.outer != nil {
		t.outer.nested += delta
		t.outer.update()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
