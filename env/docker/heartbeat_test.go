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
				p := newHeartbeat(4*time.Second, tt.ask, func(context.Context) {})
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
						p.markAlive()
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
		p := newHeartbeat(4*time.Second, func(context.Context) error { asked++; return nil }, func(context.Context) {})
		for range 1000 {
			leave := p.watch(t.Context(), func(err error) { t.Errorf("lost: %v", err) })
			time.Sleep(heartbeatInterval / 2)
			leave()
		}
		p.close()
		if asked != 0 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// A pause is news once, and the report after it may be late for a while.
func TestPause(t *testing.T) {
	var p pauseState
	at := time.Now()
	for _, tt := range []struct {
		after        time.Duration
		paused       bool
		lasted       time.Duration
		news, recent bool
	}{
		{0, false, 0, false, false},
		{time.Second, true, 0, true, true},
		{time.Minute, true, time.Minute, false, true},
		{time.Second, false, 0, false, true},
		{resumeGrace, false, 0, false, false},
		{time.Hour, true, 0, true, true},
	} {
		at = at.Add(tt.after)
		lasted, news := p.update(tt.paused, at)
		if recent := p.wasRecent(at); lasted != tt.lasted || news != tt.news || recent != tt.recent {
			t.Errorf("%+v: lasted %s, news %v, recent %v", tt, lasted, news, recent)
		}
	}
}
