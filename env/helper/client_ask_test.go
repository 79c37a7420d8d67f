package helper_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// ask is the body of a request as the helper passes it on.
func ask(t *testing.T, n uint32, args ...string) string {
	t.Helper()
	body, err := helper.Ask{Args: args, Dir: "/w"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(helper.WithNumber(n, body))
}

// waits answers when nobody is there to be answered any more.
func waits(ctx context.Context, _ env.ToolRequest) env.ToolAnswer {
	<-ctx.Done()
	return env.ToolAnswer{}
}

// TestRequestsAgainstTheRules: whatever a helper sends that no honest one does
// ends the conversation, and nobody is asked who should not be.
func TestRequestsAgainstTheRules(t *testing.T) {
	for name, tt := range map[string]struct {
		none bool // the command may not ask
		play func(s *fake, id uint32)
	}{
		"may not ask":       {none: true, play: func(s *fake, id uint32) { s.send(helper.KindAsk, id, ask(t, 1, "x")) }},
		"gone, may not ask": {none: true, play: func(s *fake, id uint32) { s.send(helper.KindGone, id, string(helper.WithNumber(1, nil))) }},
		"another command":   {play: func(s *fake, id uint32) { s.send(helper.KindAsk, id+1, ask(t, 1, "x")) }},
		"no command":        {play: func(s *fake, _ uint32) { s.send(helper.KindAsk, 0, ask(t, 1, "x")) }},
		"no number":         {play: func(s *fake, id uint32) { s.send(helper.KindAsk, id, "abc") }},
		"number zero":       {play: func(s *fake, id uint32) { s.send(helper.KindAsk, id, ask(t, 0, "x")) }},
		"number left out":   {play: func(s *fake, id uint32) { s.send(helper.KindAsk, id, ask(t, 2, "x")) }},
		"number again": {play: func(s *fake, id uint32) {
			s.send(helper.KindAsk, id, ask(t, 1, "x"))
			s.send(helper.KindAsk, id, ask(t, 1, "x"))
		}},
		"no request":          {play: func(s *fake, id uint32) { s.send(helper.KindAsk, id, string(helper.WithNumber(1, []byte("hello")))) }},
		"request too long":    {play: func(s *fake, id uint32) { s.send(helper.KindAsk, id, strings.Repeat("\x00", helper.MaxAsk+5)) }},
		"gone before it came": {play: func(s *fake, id uint32) { s.send(helper.KindGone, id, string(helper.WithNumber(1, nil))) }},
		"gone with words": {play: func(s *fake, id uint32) {
			s.send(helper.KindAsk, id, ask(t, 1, "x"))
			s.send(helper.KindGone, id, string(helper.WithNumber(1, []byte("x"))))
		}},
		"an answer":            {play: func(s *fake, id uint32) { s.send(helper.KindAnswer, id, string(helper.WithNumber(1, make([]byte, 8)))) }},
		"over, inside of none": {play: func(s *fake, id uint32) { s.exit(id, helper.Exit{Result: env.Result{ExitCode: -1}, Over: true}) }},
		"more than are allowed": {play: func(s *fake, id uint32) {
			for n := range uint32(helper.MaxAsks + 1) {
				s.send(helper.KindAsk, id, ask(t, n+1, "x"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) { tt.play(s, s.receive().ID) })
			if err != nil {
				t.Fatal(err)
			}
			cmd := env.Command{Script: "x", Tools: &env.Tools{Answer: waits}}
			if tt.none {
				cmd.Tools = nil
			}
			if _, err := c.Execute(t.Context(), cmd); !errors.Is(err, helper.ErrFrame) {
				t.Errorf("err = %v, want ErrFrame", err)
			}
		})
	}
}

// TestRequestAfterTheEnd comes when its command has been reported on.
func TestRequestAfterTheEnd(t *testing.T) {
	c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		id := s.receive().ID
		s.exit(id, helper.Exit{})
		s.send(helper.KindAsk, id, ask(t, 1, "x"))
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Answer: func(context.Context, env.ToolRequest) env.ToolAnswer {
		asked = true
		return env.ToolAnswer{}
	}}})
	if err != nil || asked {
		t.Errorf("asked %v, err = %v", asked, err)
	}
	if _, err := c.Execute(t.Context(), env.Command{Script: "x"}); !errors.Is(err, helper.ErrFrame) {
		t.Errorf("the next command: %v, want ErrFrame", err)
	}
}

// TestClientsClock: the client waits for as long as requests are worked on, and
// for what was left of the time; a helper cannot prolong that by what it sends.
func TestClientsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
			id := s.receive().ID
			for n := range uint32(3) {
				s.send(helper.KindAsk, id, ask(t, n+1, "x"))
				s.receive() // the answer
			}
			s.send(helper.KindAsk, id, ask(t, 4, "gone"))
			s.send(helper.KindGone, id, string(helper.WithNumber(4, nil)))
			s.receive()
			for range 100 { // nothing of this gives it time
				s.send(helper.KindGone, id, string(helper.WithNumber(1, nil)))
				time.Sleep(time.Second)
				s.send(helper.KindOutput, id, "x")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Minute, Tools: &env.Tools{
			Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
				if r.Args[0] == "gone" {
					<-ctx.Done()
				} else {
					time.Sleep(time.Hour)
				}
				return env.ToolAnswer{}
			},
		}})
		if took, want := time.Since(start), 3*time.Hour+time.Minute+helper.Grace; !errors.Is(err, helper.ErrSilent) || took != want {
			t.Errorf("err = %v after %s, want ErrSilent after %s", err, took, want)
		}
	})
}

// TestInsideIsOver: the report on a command ends what ran inside of it, whatever
// the helper says of that, and a helper that does not report at all is silent.
func TestInsideIsOver(t *testing.T) {
	for name, tt := range map[string]struct {
		play  func(s *fake, outer, inner uint32)
		outer error
		inner error
	}{
		"reported": {func(s *fake, outer, inner uint32) {
			s.exit(inner, helper.Exit{Result: env.Result{ExitCode: -1}, Over: true})
			s.exit(outer, helper.Exit{})
		}, nil, env.ErrClosed},
		"not reported": {func(s *fake, outer, _ uint32) { s.exit(outer, helper.Exit{}) }, nil, env.ErrClosed},
		"silence":      {func(*fake, uint32, uint32) {}, helper.ErrSilent, helper.ErrSilent},
		"lost":         {func(s *fake, _, _ uint32) { _ = s.conn.Close() }, helper.ErrLost, helper.ErrLost},
		"output after outer": {func(s *fake, outer, inner uint32) {
			s.exit(outer, helper.Exit{})
			s.send(helper.KindOutput, inner, "x")
		}, nil, env.ErrClosed},
		"cancelled by nobody": {func(s *fake, _, inner uint32) {
			s.exit(inner, helper.Exit{Result: env.Result{ExitCode: -1}, Cancelled: true})
		}, helper.ErrLost, helper.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
					outer := s.receive().ID
					s.send(helper.KindAsk, outer, ask(t, 1, "x"))
					inner := s.receive()
					if run, _, err := helper.DecodeRun(inner.Body); err != nil || run.Inside != outer || run.Asks {
						t.Errorf("run %+v, %v", run, err)
					}
					tt.play(s, outer, inner.ID)
				})
				if err != nil {
					t.Fatal(err)
				}
				var inner error
				_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
					_, inner = r.Inside.Execute(context.WithoutCancel(ctx), env.Command{Script: "y"})
					return env.ToolAnswer{}
				}}})
				if !errors.Is(err, tt.outer) || (err == nil) != (tt.outer == nil) {
					t.Errorf("err = %v, want %v", err, tt.outer)
				}
				if !errors.Is(inner, tt.inner) {
					t.Errorf("inside: err = %v, want %v", inner, tt.inner)
				}
			})
		})
	}
}

// TestLateInsideForAReason: a sandbox that stood still is excused for the command
// and for the one inside of it at once.
func TestLateInsideForAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var excuses atomic.Int32
		cfg := helper.ClientConfig{Overdue: func() time.Duration {
			if excuses.Add(1) > 1 {
				return 0
			}
			return 5 * time.Minute
		}}
		c, err := converse(t, cfg, goodHello, func(s *fake) {
			outer := s.receive().ID
			s.send(helper.KindAsk, outer, ask(t, 1, "x"))
			inner := s.receive().ID
			time.Sleep(5*time.Minute + 30*time.Second)
			s.exit(inner, helper.Exit{Result: env.Result{ExitCode: 3}})
			s.receive() // the answer
			s.exit(outer, helper.Exit{Result: env.Result{ExitCode: 4}})
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Minute, Tools: &env.Tools{Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			in, err := r.Inside.Execute(ctx, env.Command{Script: "y", Timeout: time.Minute})
			if err != nil || in.ExitCode != 3 {
				t.Errorf("inside: %+v, %v", in, err)
			}
			return env.ToolAnswer{}
		}}})
		if err != nil || r.ExitCode != 4 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestOneInsideAtATime: a request's Inside is an environment like others.
func TestOneInsideAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
			outer := s.receive().ID
			s.send(helper.KindAsk, outer, ask(t, 1, "x"))
			for range 2 {
				inner := s.receive()
				if inner.Kind != helper.KindRun {
					t.Errorf("frame %q, want a run", inner.Kind)
				}
				time.Sleep(time.Second)
				s.exit(inner.ID, helper.Exit{})
			}
			s.receive()
			s.exit(outer, helper.Exit{})
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			start := time.Now()
			other := make(chan error)
			go func() {
				_, err := r.Inside.Execute(ctx, env.Command{Script: "y"})
				other <- err
			}()
			_, err := r.Inside.Execute(ctx, env.Command{Script: "z"})
			if err := errors.Join(err, <-other); err != nil || time.Since(start) != 2*time.Second {
				t.Errorf("both took %s, %v", time.Since(start), err)
			}
			return env.ToolAnswer{}
		}}})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestAnswersThatNobodyTakes: a helper that asks on and on, and reads nothing, does
// not make mini hold more and more.
func TestAnswersThatNobodyTakes(t *testing.T) {
	answered, over := make(chan struct{}, 1), make(chan struct{})
	asked := 0
	c, err := converse(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		id := s.receive().ID
		for asked < 1000 {
			asked++
			if helper.WriteFrame(s.conn, helper.Frame{Kind: helper.KindAsk, ID: id, Body: []byte(ask(t, uint32(asked), "x"))}) != nil {
				return
			}
			select {
			case <-answered:
			case <-over:
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Answer: func(context.Context, env.ToolRequest) env.ToolAnswer {
		answered <- struct{}{}
		return env.ToolAnswer{Output: make([]byte, 1000)}
	}}})
	close(over)
	if !errors.Is(err, helper.ErrFrame) || asked > 100 {
		t.Errorf("after %d requests: %v", asked, err)
	}
}
