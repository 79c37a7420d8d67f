package helper_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/sink"
)

// A sink may be given more than a client would hold, and gets all of it.
func TestSinkGetsWhatComes(t *testing.T) {
	const chunks = env.SubmissionLimit/helper.MaxChunk + 1
	c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		run := s.receive()
		for range chunks {
			s.send(helper.KindOutput, run.ID, strings.Repeat("x", helper.MaxChunk))
		}
		n := int64(chunks * helper.MaxChunk)
		s.exit(run.ID, helper.Exit{Result: env.Result{Bytes: n, Chars: n, ExitCode: 3}})
	})
	if err != nil {
		t.Fatal(err)
	}
	var got countAll
	res, err := c.Execute(t.Context(), env.Command{Script: "x", Sink: &got, OutputLimit: env.SinkLimit})
	if err != nil || res.ExitCode != 3 || got != chunks*helper.MaxChunk || res.Output != nil || res.Head != int(got) {
		t.Errorf("the sink got %d bytes, the result has %d, head %d, exit code %d, %v", got, len(res.Output), res.Head, res.ExitCode, err)
	}
}

type countAll int

func (c *countAll) Write(p []byte) (int, error) {
	*c += countAll(len(p))
	return len(p), nil
}

// What had come when the sandbox was lost is not.
func TestSinkOfALostSandbox(t *testing.T) {
	c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		s.send(helper.KindOutput, s.receive().ID, "last words")
		_ = s.conn.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	res, err := c.Execute(t.Context(), env.Command{Script: "x", Sink: &got})
	if !errors.Is(err, helper.ErrLost) || got.String() != "last words" || res.Bytes != 10 {
		t.Errorf("the sink got %q, the result has %d bytes, %v", got.String(), res.Bytes, err)
	}
}

// A sink of no use ends its command, and nothing else.
func TestSinkOfNoUse(t *testing.T) {
	for _, tt := range []struct {
		name string
		sink func(ctx context.Context) writer
		last time.Duration // until the command is given up
	}{
		{"broken", func(context.Context) writer { return func([]byte) (int, error) { return 0, errFull } }, 0},
		{"stuck", func(ctx context.Context) writer {
			return func([]byte) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		}, sink.Patience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, free := context.WithCancel(t.Context())
				c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
					run := s.receive()
					for range 100 {
						s.send(helper.KindOutput, run.ID, "x")
					}
					if f := s.receive(); f.Kind != helper.KindCancel || f.ID != run.ID {
						s.t.Errorf("the next frame is %q of %d, want a cancel", f.Kind, f.ID)
					}
					s.exit(run.ID, helper.Exit{Result: env.Result{Bytes: 100, Chars: 100, ExitCode: -1}})
					s.exit(s.receive().ID, helper.Exit{Result: env.Result{ExitCode: 7}})
				})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = c.Execute(t.Context(), env.Command{Script: "x", Sink: tt.sink(ctx), Timeout: time.Hour})
				if !errors.Is(err, env.ErrSink) || time.Since(start) != tt.last {
					t.Errorf("%v after %s", err, time.Since(start))
				}
				free()
				if res, err := c.Execute(t.Context(), env.Command{Script: "y"}); err != nil || res.ExitCode != 7 {
					t.Errorf("the next command: %+v, %v", res, err)
				}
			})
		})
	}
}

// Nothing more is read of a sandbox while its sink is stuck; its end gets
// through all the same.
func TestCloseWithAStuckSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, free := context.WithCancel(t.Context())
		defer free()
		c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
			run := s.receive()
			for range 100 {
				s.send(helper.KindOutput, run.ID, "x")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = c.Close()
		}()
		start := time.Now()
		stuck := writer(func([]byte) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		_, err = c.Execute(t.Context(), env.Command{Script: "x", Sink: stuck, Timeout: time.Hour})
		if !errors.Is(err, env.ErrClosed) || time.Since(start) > 2*sink.Patience {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

var errFull = errors.New("disk full")

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
