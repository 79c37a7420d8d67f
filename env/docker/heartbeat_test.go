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

// silent is the ping of an engine that accepts connections but does not answer.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestHeartbeat(t *testing.T) {
	for name, tt := range map[string]struct {
		ping  func(context.Context) error
		bytes time.Duration // interval at which a container sends data; 0 means never
		lost  bool
	}{
		"frozen":                         {ping: silent, lost: true},
		"out of reach":                   {ping: func(context.Context) error { return syscall.EHOSTUNREACH }, lost: true},
		"alive":                          {ping: func(context.Context) error { return nil }},
		"slow, but containers send data": {ping: silent, bytes: time.Second},
		"its socket was removed":         {ping: func(context.Context) error { return fmt.Errorf("dial: %w", syscall.ENOENT) }},
		"refuses new connections":        {ping: func(context.Context) error { return fmt.Errorf("dial: %w", syscall.ECONNREFUSED) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeartbeat(4*time.Second, tt.ping, func(context.Context) {})
				lost := make(chan error, 1)
				started := time.Now()
				leave := h.watch(t.Context(), func(err error) { lost <- err })
				var data <-chan time.Time
				if tt.bytes > 0 {
					tick := time.NewTicker(tt.bytes)
					defer tick.Stop()
					data = tick.C
				}
				wait := time.After(time.Minute)
				for waiting := true; waiting; {
					select {
					case <-data:
						h.markAlive()
					case err := <-lost:
						waiting = false
						e, ok := errors.AsType[*env.Error](err)
						if took := time.Since(started); !tt.lost || !ok || e.Status != env.DaemonUnavailable || took > 5*time.Second {
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
				h.close()
			})
		})
	}
}

// TestHeartbeatOfShortWaits: most commands end before the first interval, and the
// engine is not pinged.
func TestHeartbeatOfShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		h := newHeartbeat(4*time.Second, func(context.Context) error { pings++; return nil }, func(context.Context) {})
		for range 1000 {
			leave := h.watch(t.Context(), func(err error) { t.Errorf("lost: %v", err) })
			time.Sleep(heartbeatInterval / 2)
			leave()
		}
		h.close()
		if pings != 0 {
			t.Errorf("%d pings", pings)
		}
	})
}

// TestPause: a pause starts once, and counts as recent until resumeGrace after its end.
func TestPause(t *testing.T) {
	var p pauseState
	now := time.Now()
	for _, tt := range []struct {
		after           time.Duration
		paused          bool
		lasted          time.Duration
		started, recent bool
	}{
		{0, false, 0, false, false},
		{time.Second, true, 0, true, true},
		{time.Minute, true, time.Minute, false, true},
		{time.Second, false, 0, false, true},
		{resumeGrace, false, 0, false, false},
		{time.Hour, true, 0, true, true},
	} {
		now = now.Add(tt.after)
		lasted, started := p.update(tt.paused, now)
		if recent := p.wasPausedRecently(now); lasted != tt.lasted || started != tt.started || recent != tt.recent {
			t.Errorf("%+v: lasted %s, news %v, recent %v", tt, lasted, started, recent)
		}
	}
}
