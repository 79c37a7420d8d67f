package helper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestExtendDeadline: a sandbox was paused for five minutes during a command with a timeout of one
// minute or a file transfer, and ExtendDeadline makes the client wait.
func TestExtendDeadline(t *testing.T) {
	const wait = time.Minute // of the command, and transferTimeout
	for name, tt := range map[string]struct {
		extensions []time.Duration
		want       error
	}{
		"nobody knows why":      {nil, helper.ErrNoResponse},
		"paused long enough":    {[]time.Duration{2 * wait, 3 * wait}, nil},
		"paused, and then late": {[]time.Duration{2 * wait}, helper.ErrNoResponse},
	} {
		for what, work := range map[string]func(context.Context, *helper.Client) error{
			"command": func(ctx context.Context, c *helper.Client) error {
				r, err := c.Execute(ctx, env.Command{Script: "x", Timeout: wait})
				if err == nil && r.ExitCode != 3 {
					err = fmt.Errorf("exit code %d", r.ExitCode)
				}
				return err
			},
			"files in":  func(ctx context.Context, c *helper.Client) error { return c.Put(ctx, "/d", bytes.NewReader(nil)) },
			"files out": func(ctx context.Context, c *helper.Client) error { return c.Get(ctx, "/d", io.Discard) },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					extensions := tt.extensions
					cfg := helper.ClientConfig{ExtendDeadline: func() (more time.Duration) {
						if len(extensions) > 0 {
							more, extensions = extensions[0], extensions[1:]
						}
						return more
					}}
					c, err := connectFake(t, cfg, goodHello, func(s *fake) {
						id := s.receive().ID
						if what == "files in" {
							s.receive() // the end of the files
						}
						time.Sleep(5*wait + wait/2)
						if what == "command" {
							s.exit(id, helper.Exit{Result: env.Result{ExitCode: 3}})
							return
						}
						s.send(helper.KindDone, id, "{}")
					})
					require.NoError(t, err)
					if err := work(t.Context(), c); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
						t.Errorf("%v; want %v", err, tt.want)
					}
				})
			})
		}
	}
}

func TestCloseWithError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := connectFake(t, helper.ClientConfig{}, goodHello, nil)
		require.NoError(t, err)
		reason := errors.New("the engine is frozen")
		time.AfterFunc(time.Second, func() { c.CloseWithError(reason) })
		start := time.Now()
		if _, err := c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Hour}); !errors.Is(err, reason) || time.Since(start) != time.Second {
			t.Errorf("after %s: %v, want the reason after a second", time.Since(start), err)
		}
		if _, err := c.Execute(t.Context(), env.Command{Script: "x"}); !errors.Is(err, reason) || !errors.Is(c.Err(), reason) {
			t.Errorf("the next command: %v, want the reason", err)
		}
	})
}

// expires checks when a timer expires, relative to start.
func expires(t *testing.T, c *helper.PausableTimer, start time.Time, want time.Duration) {
	t.Helper()
	<-c.C()
	assert.Equal(t, want, time.Since(start), "expired after")
	assert.Equal(t, 0, c.Remaining(), "left")
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
			assert.Equal(t, 30*time.Second, timer.Remaining(), "left")
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
