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
		t.Errorf("expired after %s, want %s", took, want)
	}
	if c.Remaining() != 0 {
		t.Errorf("%s are left", c.Remaining())
	}
}

func TestPausableTimer(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, start time.Time){
		"plain": func(t *testing.T, start time.Time) {
			expires(t, helper.NewPausableTimer(time.Minute, nil), start, time.Minute)
		},
		"paused": func(t *testing.T, start time.Time) {
			timer := helper.NewPausableTimer(time.Minute, nil)
			time.Sleep(30 * time.Second)
			resumeFirst, resumeSecond := timer.Pause(), timer.Pause()
			time.Sleep(time.Hour)
			resumeFirst()
			resumeFirst() // a second call has no effect
			time.Sleep(time.Hour)
			if timer.Remaining() != 30*time.Second {
				t.Errorf("%s are left", timer.Remaining())
			}
			resumeSecond()
			expires(t, timer, start, 2*time.Hour+time.Minute)
		},
		"runs while a nested timer runs": func(t *testing.T, start time.Time) {
			timer := helper.NewPausableTimer(time.Minute, nil)
			resume := timer.Pause()
			time.Sleep(time.Hour)
			inner := helper.NewPausableTimer(time.Hour, timer)
			time.Sleep(20 * time.Second)
			resumeInner := inner.Pause() // now both timers are paused
			time.Sleep(time.Hour)
			innermost := helper.NewPausableTimer(time.Hour, inner)
			time.Sleep(10 * time.Second)
			innermost.Stop()
			time.Sleep(time.Hour)
			resumeInner()
			time.Sleep(10 * time.Second)
			inner.Stop()
			time.Sleep(time.Hour)
			resume()
			expires(t, timer, start, 4*time.Hour+time.Minute)
		},
		"expires while a nested timer runs": func(t *testing.T, start time.Time) {
			timer := helper.NewPausableTimer(time.Minute, nil)
			timer.Pause()
			time.Sleep(time.Hour)
			helper.NewPausableTimer(2*time.Minute, timer)
			expires(t, timer, start, time.Hour+time.Minute)
		},
		"expired, then paused": func(t *testing.T, start time.Time) {
			timer := helper.NewPausableTimer(time.Minute, nil)
			time.Sleep(2 * time.Minute)
			resume := timer.Pause()
			select {
			case <-timer.C():
				t.Error("the timer expired while it was paused")
			default:
			}
			time.Sleep(time.Minute)
			resume()
			expires(t, timer, start, 3*time.Minute)
		},
		"extended": func(t *testing.T, start time.Time) {
			timer := helper.NewPausableTimer(time.Minute, nil)
			timer.Extend(time.Minute)
			resume := timer.Pause()
			timer.Extend(time.Minute)
			time.Sleep(time.Minute)
			resume()
			expires(t, timer, start, 4*time.Minute)
			time.Sleep(time.Minute)
			timer.Extend(time.Minute)
			expires(t, timer, start, 6*time.Minute)
		},
		"no expiry": func(t *testing.T, _ time.Time) {
			timer := helper.NewPausableTimer(0, nil)
			time.Sleep(1000 * time.Hour)
			select {
			case <-timer.C():
				t.Error("the timer expired")
			default:
			}
			timer.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, time.Now()) })
		})
	}
}
