package helper_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// TestExtendReportDeadline: a sandbox was paused for five minutes during a command with
// a timeout of one minute, and ExtendDeadline makes the client wait.
func TestExtendReportDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		extensions []time.Duration
		want       error
	}{
		"nobody knows why":      {nil, helper.ErrNoResponse},
		"paused long enough":    {[]time.Duration{2 * time.Minute, 3 * time.Minute}, nil},
		"paused, and then late": {[]time.Duration{2 * time.Minute}, helper.ErrNoResponse},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				extensions := tt.extensions
				cfg := helper.ClientConfig{ExtendDeadline: func() (more time.Duration) {
					if len(extensions) > 0 {
						more, extensions = extensions[0], extensions[1:]
					}
					return more
				}}
				c, err := connectFake(t, cfg, goodHello, func(s *fake) {
					run := s.receive()
					time.Sleep(5*time.Minute + 30*time.Second)
					s.exit(run.ID, helper.Exit{Result: env.Result{ExitCode: 3}})
				})
				if err != nil {
					t.Fatal(err)
				}
				res, err := c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Minute})
				if !errors.Is(err, tt.want) || tt.want == nil && res.ExitCode != 3 {
					t.Errorf("%+v, %v; want %v", res, err, tt.want)
				}
			})
		})
	}
}

// TestExtendTransferDeadline: a file transfer stalls while its sandbox is paused.
func TestExtendTransferDeadline(t *testing.T) {
	const wait = time.Minute // transferTimeout
	for name, tt := range map[string]struct {
		extensions []time.Duration
		want       error
	}{
		"nobody knows why":      {nil, helper.ErrNoResponse},
		"paused long enough":    {[]time.Duration{2 * wait, 3 * wait}, nil},
		"paused, and then late": {[]time.Duration{2 * wait}, helper.ErrNoResponse},
	} {
		for direction, transfer := range map[string]func(context.Context, *helper.Client) error{
			"in":  func(ctx context.Context, c *helper.Client) error { return c.Put(ctx, "/d", bytes.NewReader(nil)) },
			"out": func(ctx context.Context, c *helper.Client) error { return c.Get(ctx, "/d", io.Discard) },
		} {
			t.Run(name+", "+direction, func(t *testing.T) {
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
						if direction == "in" {
							s.receive() // the end of the files
						}
						time.Sleep(5*wait + wait/2)
						s.send(helper.KindDone, id, "{}")
					})
					if err != nil {
						t.Fatal(err)
					}
					if err := transfer(t.Context(), c); !errors.Is(err, tt.want) {
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
		if err != nil {
			t.Fatal(err)
		}
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
