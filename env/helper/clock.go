package helper

import (
	"sync"
	"time"
)

// forever is a time that nobody waits for, and that can be added to.
const forever = 1 << 60

// Clock counts the time of a command down. It stands still while requests of the
// command are worked on, but for the time in which the clock of a command inside
// of it runs. Its methods are safe for concurrent use.
type Clock struct {
	outer *Clock // of the command that this one runs inside of; nil without one
	timer *time.Timer
	tree  *sync.Mutex // of all clocks inside of the outermost one

	held   int // requests that are worked on
	inside int // clocks inside of this one that run
	runs   bool
	over   bool
	until  time.Time     // while it runs: when the time is over
	left   time.Duration // while it does not
}

// NewClock starts a clock of d, or of no bound where d is not positive. outer may
// be nil.
func NewClock(d time.Duration, outer *Clock) *Clock {
	if d <= 0 {
		d = forever
	}
	c := &Clock{outer: outer, timer: time.NewTimer(d), left: d}
	if outer == nil {
		c.tree = &sync.Mutex{}
	} else {
		c.tree = outer.tree
	}
	c.tree.Lock()
	defer c.tree.Unlock()
	c.judge()
	return c
}

// Expired is where something comes from when the time is over.
func (c *Clock) Expired() <-chan time.Time { return c.timer.C }

// Hold is for a request that is worked on from now on, until release is called
// for the first time.
func (c *Clock) Hold() (release func()) {
	c.change(&c.held, 1)
	return sync.OnceFunc(func() { c.change(&c.held, -1) })
}

// Extend puts the end off, also when it has come.
func (c *Clock) Extend(d time.Duration) {
	c.tree.Lock()
	defer c.tree.Unlock()
	if !c.runs {
		c.left += d
		return
	}
	c.until = latest(c.until, time.Now()).Add(d)
	c.timer.Reset(time.Until(c.until))
}

// Left is what is left of the time, zero when it is over.
func (c *Clock) Left() time.Duration {
	c.tree.Lock()
	defer c.tree.Unlock()
	if !c.runs {
		return c.left
	}
	return max(0, time.Until(c.until))
}

// Stop is for the end of the command.
func (c *Clock) Stop() {
	c.tree.Lock()
	defer c.tree.Unlock()
	c.over = true
	c.judge()
}

func (c *Clock) change(count *int, by int) {
	c.tree.Lock()
	defer c.tree.Unlock()
	*count += by
	c.judge()
}

// judge finds out whether the clock runs now. The lock is held.
func (c *Clock) judge() {
	runs := !c.over && (c.held == 0 || c.inside > 0)
	if runs == c.runs {
		return
	}
	c.runs = runs
	by := 1
	if runs {
		c.until = time.Now().Add(c.left)
		c.timer.Reset(c.left)
	} else {
		c.timer.Stop()
		c.left = max(0, time.Until(c.until))
		by = -1
	}
	if c.outer != nil {
		c.outer.inside += by
		c.outer.judge()
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
