package helper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env/helper"
)

// expires checks when a timer expires, relative to start.
func expires(t *testing.T, c *helper.PausableTimer, start time.Time, want time.Duration) {
	t.Helper()
	<-c.C()
	if took := time.Since(start); took != want {
		t.Errorf("over after %s, want %s", took, want)
	}
	if c.Remaining() != 0 {
		t.Errorf("%s are left", c.Remaining())
	}
}

func TestClock(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, start time.Time){
		"plain": func(t *testing.T, start time.Time) {
			expires(t, helper.NewPausableTimer(time.Minute, nil), start, time.Minute)
		},
		"stands still": func(t *testing.T, start time.Time) {
			c := helper.NewPausableTimer(time.Minute, nil)
			time.Sleep(30 * time.Second)
			first, second := c.Pause(), c.Pause()
			time.Sleep(time.Hour)
			first()
			first() // a second time: nothing
			time.Sleep(time.Hour)
			if c.Remaining() != 30*time.Second {
				t.Errorf("%s are left", c.Remaining())
			}
			second()
			expires(t, c, start, 2*time.Hour+time.Minute)
		},
		"runs while one inside runs": func(t *testing.T, start time.Time) {
			c := helper.NewPausableTimer(time.Minute, nil)
			release := c.Pause()
			time.Sleep(time.Hour)
			inner := helper.NewPausableTimer(time.Hour, c)
			time.Sleep(20 * time.Second)
			hold := inner.Pause() // and then neither does
			time.Sleep(time.Hour)
			innermost := helper.NewPausableTimer(time.Hour, inner)
			time.Sleep(10 * time.Second)
			innermost.Stop()
			time.Sleep(time.Hour)
			hold()
			time.Sleep(10 * time.Second)
			inner.Stop()
			time.Sleep(time.Hour)
			release()
			expires(t, c, start, 4*time.Hour+time.Minute)
		},
		"runs out with one inside": func(t *testing.T, start time.Time) {
			c := helper.NewPausableTimer(time.Minute, nil)
			c.Pause()
			time.Sleep(time.Hour)
			helper.NewPausableTimer(2*time.Minute, c)
			expires(t, c, start, time.Hour+time.Minute)
		},
		"over, and then held": func(t *testing.T, start time.Time) {
			c := helper.NewPausableTimer(time.Minute, nil)
			time.Sleep(2 * time.Minute)
			release := c.Pause()
			select {
			case <-c.C():
				t.Error("it is over while it stands still")
			default:
			}
			time.Sleep(time.Minute)
			release()
			expires(t, c, start, 3*time.Minute)
		},
		"extended": func(t *testing.T, start time.Time) {
			c := helper.NewPausableTimer(time.Minute, nil)
			c.Extend(time.Minute)
			release := c.Pause()
			c.Extend(time.Minute)
			time.Sleep(time.Minute)
			release()
			expires(t, c, start, 4*time.Minute)
			time.Sleep(time.Minute)
			c.Extend(time.Minute)
			expires(t, c, start, 6*time.Minute)
		},
		"no bound": func(t *testing.T, _ time.Time) {
			c := helper.NewPausableTimer(0, nil)
			time.Sleep(1000 * time.Hour)
			select {
			case <-c.C():
				t.Error("it is over")
			default:
			}
			c.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, time.Now()) })
		})
	}
}
