package helper_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// encodeRequest returns the body of a request as the helper forwards it.
func encodeRequest(t *testing.T, n uint32, args ...string) string {
	t.Helper()
	body, err := helper.ToolRequest{Args: args, Dir: "/w"}.Encode()
	require.NoError(t, err)
	return string(helper.WithRequestNumber(n, body))
}

// waitForCancel is a handler that returns when the request is cancelled.
func waitForCancel(ctx context.Context, _ env.ToolRequest) env.ToolResponse {
	<-ctx.Done()
	return env.ToolResponse{}
}

// TestInvalidRequests: requests that violate the protocol end the connection, and the
// handler is not called.
func TestInvalidRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		noTools bool // the command may not call tools
		play    func(s *fake, id uint32)
	}{
		"no tools":             {noTools: true, play: func(s *fake, id uint32) { s.send(helper.KindToolRequest, id, encodeRequest(t, 1, "x")) }},
		"cancel without tools": {noTools: true, play: func(s *fake, id uint32) { s.send(helper.KindToolCancel, id, string(helper.WithRequestNumber(1, nil))) }},
		"another command":      {play: func(s *fake, id uint32) { s.send(helper.KindToolRequest, id+1, encodeRequest(t, 1, "x")) }},
		"no command":           {play: func(s *fake, _ uint32) { s.send(helper.KindToolRequest, 0, encodeRequest(t, 1, "x")) }},
		"no number":            {play: func(s *fake, id uint32) { s.send(helper.KindToolRequest, id, "abc") }},
		"number zero":          {play: func(s *fake, id uint32) { s.send(helper.KindToolRequest, id, encodeRequest(t, 0, "x")) }},
		"number skipped":       {play: func(s *fake, id uint32) { s.send(helper.KindToolRequest, id, encodeRequest(t, 2, "x")) }},
		"number again": {play: func(s *fake, id uint32) {
			s.send(helper.KindToolRequest, id, encodeRequest(t, 1, "x"))
			s.send(helper.KindToolRequest, id, encodeRequest(t, 1, "x"))
		}},
		"no request": {play: func(s *fake, id uint32) {
			s.send(helper.KindToolRequest, id, string(helper.WithRequestNumber(1, []byte("hello"))))
		}},
		"request too long": {play: func(s *fake, id uint32) {
			s.send(helper.KindToolRequest, id, strings.Repeat("\x00", helper.MaxToolRequestFrame+5))
		}},
		"early cancellation": {play: func(s *fake, id uint32) { s.send(helper.KindToolCancel, id, string(helper.WithRequestNumber(1, nil))) }},
		"cancel with a body": {play: func(s *fake, id uint32) {
			s.send(helper.KindToolRequest, id, encodeRequest(t, 1, "x"))
			s.send(helper.KindToolCancel, id, string(helper.WithRequestNumber(1, []byte("x"))))
		}},
		"an answer": {play: func(s *fake, id uint32) {
			s.send(helper.KindToolResponse, id, string(helper.WithRequestNumber(1, make([]byte, 8))))
		}},
		"outer ended, not nested": {play: func(s *fake, id uint32) { s.exit(id, helper.Exit{Result: env.Result{ExitCode: -1}, OuterEnded: true}) }},
		"more than are allowed": {play: func(s *fake, id uint32) {
			for n := range uint32(helper.MaxToolRequests + 1) {
				s.send(helper.KindToolRequest, id, encodeRequest(t, n+1, "x"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) { tt.play(s, s.receive().ID) })
			require.NoError(t, err)
			cmd := env.Command{Script: "x", Tools: &env.Tools{Handle: waitForCancel}}
			if tt.noTools {
				cmd.Tools = nil
			}
			_, err = c.Execute(t.Context(), cmd)
			assert.ErrorIs(t, err, helper.ErrFrame)
		})
	}
}

// TestRequestAfterExit sends a request after the report of its command.
func TestRequestAfterExit(t *testing.T) {
	c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		id := s.receive().ID
		s.exit(id, helper.Exit{})
		s.send(helper.KindToolRequest, id, encodeRequest(t, 1, "x"))
	})
	require.NoError(t, err)
	called := false
	_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Handle: func(context.Context, env.ToolRequest) env.ToolResponse {
		called = true
		return env.ToolResponse{}
	}}})
	if err != nil || called {
		t.Errorf("handler called: %v, err = %v", called, err)
	}
	_, err = c.Execute(t.Context(), env.Command{Script: "x"})
	assert.ErrorIs(t, err, helper.ErrFrame, "the next command")
}

// TestReportDeadline: the deadline of a report is paused while requests are handled;
// the helper cannot extend it otherwise.
func TestReportDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
			id := s.receive().ID
			for n := range uint32(3) {
				s.send(helper.KindToolRequest, id, encodeRequest(t, n+1, "x"))
				s.receive() // the answer
			}
			s.send(helper.KindToolRequest, id, encodeRequest(t, 4, "gone"))
			s.send(helper.KindToolCancel, id, string(helper.WithRequestNumber(4, nil)))
			s.receive()
			for range 100 { // none of these frames extends the deadline
				s.send(helper.KindToolCancel, id, string(helper.WithRequestNumber(1, nil)))
				time.Sleep(time.Second)
				s.send(helper.KindOutput, id, "x")
			}
		})
		require.NoError(t, err)
		start := time.Now()
		_, err = c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Minute, Tools: &env.Tools{
			Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
				if r.Args[0] == "gone" {
					<-ctx.Done()
				} else {
					time.Sleep(time.Hour)
				}
				return env.ToolResponse{}
			},
		}})
		if took, want := time.Since(start), 3*time.Hour+time.Minute+helper.ReportGrace; !errors.Is(err, helper.ErrNoResponse) || took != want {
			t.Errorf("err = %v after %s, want ErrNoResponse after %s", err, took, want)
		}
	})
}

// TestOuterEnded: the report of a command ends its nested commands, regardless of what
// the helper sends for them, and a missing report is ErrNoResponse.
func TestOuterEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		play  func(s *fake, outer, inner uint32)
		outer error
		inner error
	}{
		"reported": {func(s *fake, outer, inner uint32) {
			s.exit(inner, helper.Exit{Result: env.Result{ExitCode: -1}, OuterEnded: true})
			s.exit(outer, helper.Exit{})
		}, nil, env.ErrClosed},
		"not reported": {func(s *fake, outer, _ uint32) { s.exit(outer, helper.Exit{}) }, nil, env.ErrClosed},
		"silence":      {func(*fake, uint32, uint32) {}, helper.ErrNoResponse, helper.ErrNoResponse},
		"lost":         {func(s *fake, _, _ uint32) { _ = s.conn.Close() }, helper.ErrDisconnected, helper.ErrDisconnected},
		"output after outer": {func(s *fake, outer, inner uint32) {
			s.exit(outer, helper.Exit{})
			s.send(helper.KindOutput, inner, "x")
		}, nil, env.ErrClosed},
		"cancelled without a request": {func(s *fake, _, inner uint32) {
			s.exit(inner, helper.Exit{Result: env.Result{ExitCode: -1}, Cancelled: true})
		}, helper.ErrDisconnected, helper.ErrDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
					outer := s.receive().ID
					s.send(helper.KindToolRequest, outer, encodeRequest(t, 1, "x"))
					inner := s.receive()
					if run, _, err := helper.DecodeRun(inner.Body); err != nil || run.Outer != outer || run.AllowTools {
						t.Errorf("run %+v, %v", run, err)
					}
					tt.play(s, outer, inner.ID)
				})
				require.NoError(t, err)
				var inner error
				_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
					_, inner = r.Nested.Execute(context.WithoutCancel(ctx), env.Command{Script: "y"})
					return env.ToolResponse{}
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

// TestExtendNestedDeadline: ExtendDeadline extends the deadlines of a command and of
// its nested command.
func TestExtendNestedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var extensions atomic.Int32
		cfg := helper.ClientConfig{ExtendDeadline: func() time.Duration {
			if extensions.Add(1) > 1 {
				return 0
			}
			return 5 * time.Minute
		}}
		c, err := connectFake(t, cfg, goodHello, func(s *fake) {
			outer := s.receive().ID
			s.send(helper.KindToolRequest, outer, encodeRequest(t, 1, "x"))
			inner := s.receive().ID
			time.Sleep(5*time.Minute + 30*time.Second)
			s.exit(inner, helper.Exit{Result: env.Result{ExitCode: 3}})
			s.receive() // the answer
			s.exit(outer, helper.Exit{Result: env.Result{ExitCode: 4}})
		})
		require.NoError(t, err)
		r, err := c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Minute, Tools: &env.Tools{Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			in, err := r.Nested.Execute(ctx, env.Command{Script: "y", Timeout: time.Minute})
			if err != nil || in.ExitCode != 3 {
				t.Errorf("inside: %+v, %v", in, err)
			}
			return env.ToolResponse{}
		}}})
		if err != nil || r.ExitCode != 4 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestOneNestedAtATime: ToolRequest.Nested runs one command at a time, as every
// environment.
func TestOneNestedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
			outer := s.receive().ID
			s.send(helper.KindToolRequest, outer, encodeRequest(t, 1, "x"))
			for range 2 {
				inner := s.receive()
				assert.Equal(t, helper.KindRun, inner.Kind, "frame")
				time.Sleep(time.Second)
				s.exit(inner.ID, helper.Exit{})
			}
			s.receive()
			s.exit(outer, helper.Exit{})
		})
		require.NoError(t, err)
		_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			start := time.Now()
			other := make(chan error)
			go func() {
				_, err := r.Nested.Execute(ctx, env.Command{Script: "y"})
				other <- err
			}()
			_, err := r.Nested.Execute(ctx, env.Command{Script: "z"})
			if err := errors.Join(err, <-other); err != nil || time.Since(start) != 2*time.Second {
				t.Errorf("both took %s, %v", time.Since(start), err)
			}
			return env.ToolResponse{}
		}}})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadResponses: a helper that sends requests but does not read the responses
// does not use up mini's memory.
func TestUnreadResponses(t *testing.T) {
	answered, done := make(chan struct{}, 1), make(chan struct{})
	sent := 0
	c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		id := s.receive().ID
		for sent < 1000 {
			sent++
			if helper.WriteFrame(s.conn, helper.Frame{Kind: helper.KindToolRequest, ID: id, Body: []byte(encodeRequest(t, uint32(sent), "x"))}) != nil {
				return
			}
			select {
			case <-answered:
			case <-done:
				return
			}
		}
	})
	require.NoError(t, err)
	_, err = c.Execute(t.Context(), env.Command{Script: "x", Tools: &env.Tools{Handle: func(context.Context, env.ToolRequest) env.ToolResponse {
		answered <- struct{}{}
		return env.ToolResponse{Stdout: make([]byte, 1000)}
	}}})
	close(done)
	if !errors.Is(err, helper.ErrFrame) || sent > 100 {
		t.Errorf("after %d requests: %v", sent, err)
	}
}

// TestHostileStreams sends frames of streams that a correct helper never sends. The
// host does not read from the connections.
func TestHostileStreams(t *testing.T) {
	ignore := func() io.ReadWriteCloser {
		own, _ := net.Pipe()
		return own
	}
	for name, tt := range map[string]struct {
		bridge func() io.ReadWriteCloser
		play   script
	}{
		"no bridge":       {nil, func(s *fake, _ helper.Frame) { s.send(helper.KindOpen, 1, "") }},
		"data, no bridge": {nil, func(s *fake, _ helper.Frame) { s.send(helper.KindStreamData, 1, "x") }},
		"not open":        {ignore, func(s *fake, _ helper.Frame) { s.send(helper.KindStreamData, 1, "x") }},
		"credit, unknown": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindStreamCredit, 1, string(helper.EncodeWindowUpdate(1)))
		}},
		"open with a body": {ignore, func(s *fake, _ helper.Frame) { s.send(helper.KindOpen, 1, "x") }},
		"opened twice": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 7, "")
			s.send(helper.KindOpen, 7, "")
		}},
		"65 streams": {ignore, func(s *fake, _ helper.Frame) {
			for i := range helper.MaxStreams + 1 {
				s.send(helper.KindOpen, uint32(i)+1, "")
			}
		}},
		"no credit": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			for range helper.StreamWindow + 2 { // one chunk may be on its way to the connection
				s.send(helper.KindStreamData, 1, "x")
			}
		}},
		"forged credit": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.send(helper.KindStreamCredit, 1, string(helper.EncodeWindowUpdate(helper.StreamWindow)))
		}},
		"long chunk": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.send(helper.KindStreamData, 1, strings.Repeat("x", helper.MaxChunk+1))
		}},
		"closed twice": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.send(helper.KindStreamClose, 1, "")
			s.send(helper.KindStreamClose, 1, "")
		}},
		"after the exit": {ignore, func(s *fake, r helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.exit(r.ID, helper.Exit{})
			s.send(helper.KindStreamData, 1, "x")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) { tt.play(s, s.receive()) })
			require.NoError(t, err)
			_, err = c.Execute(t.Context(), env.Command{Script: "x", Bridge: tt.bridge})
			if err == nil { // the exit was valid
				_, err = c.Execute(t.Context(), env.Command{Script: "x"})
			}
			assert.ErrorIs(t, err, helper.ErrFrame)
		})
	}
}
