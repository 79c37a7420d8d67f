package docker

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
)

// silent is an engine that accepts the question and answers nothing.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestPulse(t *testing.T) {
	for name, tt := range map[string]struct {
		ask   func(context.Context) error
		bytes time.Duration // how often something comes out of a container; 0 is never
		lost  bool
	}{
		"frozen":                             {ask: silent, lost: true},
		"out of reach":                       {ask: func(context.Context) error { return syscall.EHOSTUNREACH }, lost: true},
		"well":                               {ask: func(context.Context) error { return nil }},
		"slow, but its containers are heard": {ask: silent, bytes: time.Second},
		"its socket was removed":             {ask: func(context.Context) error { return fmt.Errorf("dial: %w", syscall.ENOENT) }},
		"refuses new connections":            {ask: func(context.Context) error { return fmt.Errorf("dial: %w", syscall.ECONNREFUSED) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPulse(4*time.Second, tt.ask, func(context.Context) {})
				lost := make(chan error, 1)
				begin := time.Now()
				leave := p.watch(t.Context(), func(err error) { lost <- err })
				var heard <-chan time.Time
				if tt.bytes > 0 {
					tick := time.NewTicker(tt.bytes)
					defer tick.Stop()
					heard = tick.C
				}
				wait := time.After(time.Minute)
				for waiting := true; waiting; {
					select {
					case <-heard:
						p.note()
					case err := <-lost:
						waiting = false
						e, ok := errors.AsType[*env.Error](err)
						if took := time.Since(begin); !tt.lost || !ok || e.Status != env.DaemonUnavailable || took > 5*time.Second {
							t.Errorf("after %s: lost: %v", took, err)
						}
					case <-wait:
						waiting = false
						if tt.lost {
							t.Error("not lost after a minute")
						}
					}
				}
				leave()
				p.close()
			})
		})
	}
}

// Most commands are over before the first beat; the engine is not asked then.
func TestPulseOfShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := newPulse(4*time.Second, func(context.Context) error { asked++; return nil }, func(context.Context) {})
		for range 1000 {
			leave := p.watch(t.Context(), func(err error) { t.Errorf("lost: %v", err) })
			time.Sleep(beat / 2)
			leave()
		}
		p.close()
		if asked != 0 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestStillness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stillness
		see := func(paused bool, want time.Duration) {
			t.Helper()
			if got := s.see(paused, time.Now()); got != want {
				t.Errorf("paused for %s, want %s", got, want)
			}
		}
		excuse := func(want time.Duration) {
			t.Helper()
			if got := s.excuse(); got != want {
				t.Errorf("excused for %s, want %s", got, want)
			}
		}
		see(true, 0) // nothing is under way
		time.Sleep(time.Hour)
		s.begin()
		see(false, 0)
		excuse(0)
		see(true, 0)
		time.Sleep(time.Minute)
		see(true, time.Minute)
		excuse(beat) // it goes on; ask again
		time.Sleep(time.Minute)
		see(false, 0)
		excuse(2 * time.Minute)
		excuse(0) // once
		see(true, 0)
		time.Sleep(time.Second)
		see(false, 0)
		s.settle() // the command ended
		s.begin()
		excuse(0)
		see(true, 0)
		s.settle() // it was resumed, and the command ended before anybody looked again
		time.Sleep(6 * time.Minute)
		s.begin()
		see(true, 0) // another pause
		time.Sleep(time.Second)
		s.begin() // one that waits its turn
		s.settle()
		see(true, time.Second)
		s.settle()
	})
}
