package helper_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// script is the helper's side of a session, after the handshake and the Run frame of
// the test's command.
type script func(s *fake, run helper.Frame)

// fake is a helper with scripted frames, for frames that a real one never sends.
type fake struct {
	t    *testing.T
	conn net.Conn
}

func (s *fake) send(kind helper.Kind, id uint32, body string) {
	// Ignore the error: a client that has closed the stream does not read the rest.
	_ = helper.WriteFrame(s.conn, helper.Frame{Kind: kind, ID: id, Body: []byte(body)})
}

func (s *fake) receive() helper.Frame {
	f, err := helper.ReadFrame(s.conn, helper.MaxClientFrame)
	if err != nil {
		return helper.Frame{}
	}
	return f
}

func (s *fake) exit(id uint32, x helper.Exit) {
	b, err := json.Marshal(x)
	if err != nil {
		s.t.Error(err)
	}
	s.send(helper.KindExit, id, string(b))
}

const goodHello = `{"version":5,"hash":"abc","dir":"/w","shell":"/bin/bash","system":"Linux"}`

// connectFake starts a fake that sends hello and then calls play. It returns a client
// that is closed at the end of the test.
func connectFake(t *testing.T, cfg helper.ClientConfig, hello string, play func(*fake)) (*helper.Client, error) {
	t.Helper()
	clientConn, helperConn := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := &fake{t, helperConn}
		assert.Equal(t, helper.KindSetup, s.receive().Kind, "first frame")
		s.send(helper.KindHello, 0, hello)
		if play != nil {
			play(s)
		}
		_, _ = io.Copy(io.Discard, helperConn)
	}()
	c, err := helper.Dial(t.Context(), clientConn, cfg)
	t.Cleanup(func() {
		if c != nil {
			assert.NoError(t, c.Close())
		}
		_ = helperConn.Close()
		<-done
	})
	return c, err
}

func TestDialVerifiesHello(t *testing.T) {
	for name, tt := range map[string]struct {
		hello string
		want  error
	}{
		"the helper":        {goodHello, nil},
		"another version":   {`{"version":3,"hash":"abc"}`, helper.ErrMismatch},
		"another hash":      {`{"version":5,"hash":"abd"}`, helper.ErrMismatch},
		"not a hello":       {`{"version":`, helper.ErrFrame},
		"a hello of 300 KB": {`{"hash":"` + strings.Repeat("a", 300<<10) + `"}`, helper.ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connectFake(t, helper.ClientConfig{Hash: "abc"}, tt.hello, nil)
			if !errors.Is(err, tt.want) {
				t.Fatalf("err = %v, want %v", err, tt.want)
			}
			if err == nil && c.Hello().Dir != "/w" {
				t.Errorf("Hello = %+v", c.Hello())
			}
		})
	}
}

func TestInvalidFrames(t *testing.T) {
	for name, tt := range map[string]struct {
		play script
		want error
	}{
		"wrong id": {func(s *fake, r helper.Frame) { s.exit(r.ID+1, helper.Exit{}) }, helper.ErrFrame},
		"output of another command": {func(s *fake, r helper.Frame) {
			s.send(helper.KindOutput, r.ID+1, "x")
		}, helper.ErrFrame},
		"unknown kind":   {func(s *fake, r helper.Frame) { s.send('?', r.ID, "") }, helper.ErrFrame},
		"a client frame": {func(s *fake, r helper.Frame) { s.send(helper.KindRun, r.ID, "") }, helper.ErrFrame},
		"second hello": {func(s *fake, _ helper.Frame) {
			s.send(helper.KindHello, 0, goodHello)
		}, helper.ErrFrame},
		"exit not JSON": {func(s *fake, r helper.Frame) { s.send(helper.KindExit, r.ID, "{") }, helper.ErrFrame},
		"chunk too long": {func(s *fake, r helper.Frame) {
			s.send(helper.KindOutput, r.ID, strings.Repeat("x", helper.MaxChunk+1))
		}, helper.ErrFrame},
		"more output than asked for": {func(s *fake, r helper.Frame) {
			for range env.DefaultOutputLimit/helper.MaxChunk + 1 {
				s.send(helper.KindOutput, r.ID, strings.Repeat("x", helper.MaxChunk))
			}
		}, helper.ErrFrame},
		"a length of 4 GB":       {func(s *fake, _ helper.Frame) { _, _ = s.conn.Write([]byte("\xff\xff\xff\xff")) }, helper.ErrFrame},
		"a length of 0":          {func(s *fake, _ helper.Frame) { _, _ = s.conn.Write([]byte("\x00\x00\x00\x00")) }, helper.ErrFrame},
		"text instead of frames": {func(s *fake, _ helper.Frame) { _, _ = s.conn.Write([]byte("hello world, hello world")) }, helper.ErrFrame},
		"bytes that never came":  {func(s *fake, r helper.Frame) { s.exit(r.ID, helper.Exit{Result: env.Result{Bytes: 1}}) }, helper.ErrFrame},
		"bytes not reported":     {func(s *fake, r helper.Frame) { s.send(helper.KindOutput, r.ID, "x"); s.exit(r.ID, helper.Exit{}) }, helper.ErrFrame},
		"head beyond the output": {func(s *fake, r helper.Frame) {
			s.exit(r.ID, helper.Exit{Result: env.Result{Truncated: true, Bytes: 9, Head: 1}})
		}, helper.ErrFrame},
		"more characters": {func(s *fake, r helper.Frame) { s.exit(r.ID, helper.Exit{Result: env.Result{Chars: 1}}) }, helper.ErrFrame},
		"negative counts": {func(s *fake, r helper.Frame) { s.exit(r.ID, helper.Exit{Result: env.Result{Killed: -1}}) }, helper.ErrFrame},
		"cancelled without a request": {func(s *fake, r helper.Frame) {
			s.exit(r.ID, helper.Exit{Result: env.Result{ExitCode: -1}, Cancelled: true})
		}, helper.ErrDisconnected},
		"endless background list": {func(s *fake, r helper.Frame) {
			s.exit(r.ID, helper.Exit{Result: env.Result{Background: make([]env.Process, 33)}})
		}, helper.ErrFrame},
		"fault":         {func(s *fake, _ helper.Frame) { s.send(helper.KindError, 0, "no threads left") }, helper.ErrHelperFailed},
		"end of stream": {func(s *fake, _ helper.Frame) { _ = s.conn.Close() }, helper.ErrDisconnected},
		"end inside a frame": {func(s *fake, _ helper.Frame) {
			_, _ = s.conn.Write([]byte("\x00\x00\x00\x09O"))
			_ = s.conn.Close()
		}, helper.ErrDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) { tt.play(s, s.receive()) })
			require.NoError(t, err)
			_, err = c.Execute(t.Context(), env.Command{Script: "x"})
			assert.ErrorIs(t, err, tt.want)
			// A closed connection stays closed.
			_, err = c.Execute(t.Context(), env.Command{Script: "x"})
			assert.ErrorIs(t, err, tt.want, "next command")
		})
	}
}

func TestFrameBetweenCommandsIsRefused(t *testing.T) {
	for name, kind := range map[string]helper.Kind{"output": helper.KindOutput, "exit": helper.KindExit} {
		t.Run(name, func(t *testing.T) {
			c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) { s.send(kind, 1, `{}`) })
			require.NoError(t, err)
			deadline := time.NewTimer(10 * time.Second)
			defer deadline.Stop()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for c.Err() == nil {
				select {
				case <-tick.C:
				case <-deadline.C:
					t.Fatal("the client did not notice the forged frame")
				}
			}
			_, err = c.Execute(t.Context(), env.Command{Script: "x"})
			assert.ErrorIs(t, err, helper.ErrFrame)
		})
	}
}

func TestResult(t *testing.T) {
	c, err := connectFake(t, helper.ClientConfig{Timeout: 7 * time.Second}, goodHello, func(s *fake) {
		f := s.receive()
		r, text, err := helper.DecodeRun(f.Body)
		if err != nil || text != "echo" || r.TimeoutMillis != 7000 || r.OutputLimit != env.MinOutputLimit {
			t.Errorf("run = %+v %q, %v", r, text, err)
		}
		s.send(helper.KindOutput, f.ID, "ab")
		s.send(helper.KindOutput, f.ID, "yz")
		s.exit(f.ID, helper.Exit{Result: env.Result{ExitCode: 137, Signal: 9, Truncated: true, Head: 2, Bytes: 100, Chars: 90, OOMKilled: 1, Duration: 1 << 60}})
	})
	require.NoError(t, err)
	r, err := c.Execute(t.Context(), env.Command{Script: "echo", OutputLimit: 5})
	require.NoError(t, err)
	if string(r.Output) != "abyz" || r.Head != 2 || !r.Truncated || r.Bytes != 100 || r.Chars != 90 || r.ExitCode != 137 || r.Signal != 9 || r.OOMKilled != 1 {
		t.Errorf("result = %+v", r)
	}
	if r.Duration > time.Minute {
		t.Errorf("the duration is %s, more than Execute took", r.Duration)
	}
}

func TestTooLongCommand(t *testing.T) {
	c, err := connectFake(t, helper.ClientConfig{}, goodHello, nil)
	require.NoError(t, err)
	for name, cmd := range map[string]env.Command{
		"script":    {Script: strings.Repeat("x", env.MaxScript+1)},
		"variables": {Script: "x", Env: map[string]string{"A": strings.Repeat("x", helper.MaxClientFrame)}},
	} {
		r, err := c.Execute(t.Context(), cmd)
		if err != nil || r.Failure == "" || r.ExitCode != -1 {
			t.Errorf("%s: %+v, %v; want a failure", name, r, err)
		}
	}
}

func TestCancel(t *testing.T) {
	stop := errors.New("stop")
	for name, tt := range map[string]struct {
		reports bool  // the helper reports the cancelled command
		want    error // of the client afterwards
	}{
		"helper reports":   {true, nil},
		"helper is silent": {false, helper.ErrNoResponse},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
					f := s.receive()
					s.send(helper.KindOutput, f.ID, "begun")
					cancel(stop)
					if k := s.receive(); k.Kind != helper.KindCancel || k.ID != f.ID {
						t.Errorf("after the cancel: frame %q %d", k.Kind, k.ID)
					}
					if tt.reports {
						s.exit(f.ID, helper.Exit{Result: env.Result{ExitCode: -1, Bytes: 5, Chars: 5}, Cancelled: true})
					}
				})
				require.NoError(t, err)
				r, err := c.Execute(ctx, env.Command{Script: "x"})
				if !errors.Is(err, stop) || string(r.Output) != "begun" || r.ExitCode != -1 {
					t.Errorf("result %+v, err %v; want the output so far and the cause", r, err)
				}
				if !errors.Is(c.Err(), tt.want) {
					t.Errorf("client's end: %v, want %v", c.Err(), tt.want)
				}
			})
		})
	}
}

func TestNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := connectFake(t, helper.ClientConfig{}, goodHello, nil)
		require.NoError(t, err)
		start := time.Now()
		_, err = c.Execute(t.Context(), env.Command{Script: "x", Timeout: time.Hour})
		if took := time.Since(start); !errors.Is(err, helper.ErrNoResponse) || took != time.Hour+helper.ReportGrace {
			t.Errorf("err = %v after %s; want ErrNoResponse after the timeout and ReportGrace", err, took)
		}
	})
}

func TestNoHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientConn, helperConn := net.Pipe()
		defer helperConn.Close()
		start := time.Now()
		_, err := helper.Dial(t.Context(), clientConn, helper.ClientConfig{})
		if took := time.Since(start); !errors.Is(err, helper.ErrNoResponse) || took != helper.HandshakeTimeout {
			t.Errorf("err = %v after %s; want ErrNoResponse after %s", err, took, helper.HandshakeTimeout)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var times []time.Duration
		done := make(chan struct{})
		c, err := connectFake(t, helper.ClientConfig{Setup: helper.Setup{LeaseSeconds: 60}}, goodHello, func(s *fake) {
			defer close(done)
			for range 3 {
				assert.Equal(t, helper.KindKeepalive, s.receive().Kind, "frame")
				times = append(times, time.Since(start))
			}
		})
		require.NoError(t, err)
		<-done
		require.NoError(t, c.Close())
		for i, d := range times {
			if want := time.Duration(i+1) * 15 * time.Second; d != want {
				t.Errorf("keep-alive %d after %s, want %s", i, d, want)
			}
		}
	})
}

// TestSinkReceivesAllOutput: a sink may receive more output than the client would
// buffer.
func TestSinkReceivesAllOutput(t *testing.T) {
	const chunks = env.SubmissionLimit/helper.MaxChunk + 1
	c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		run := s.receive()
		for range chunks {
			s.send(helper.KindOutput, run.ID, strings.Repeat("x", helper.MaxChunk))
		}
		n := int64(chunks * helper.MaxChunk)
		s.exit(run.ID, helper.Exit{Result: env.Result{Bytes: n, Chars: n, ExitCode: 3}})
	})
	require.NoError(t, err)
	var got byteCounter
	res, err := c.Execute(t.Context(), env.Command{Script: "x", Sink: &got, OutputLimit: env.SinkLimit})
	if err != nil || res.ExitCode != 3 || got != chunks*helper.MaxChunk || res.Output != nil || res.Head != int(got) {
		t.Errorf("the sink got %d bytes, the result has %d, head %d, exit code %d, %v", got, len(res.Output), res.Head, res.ExitCode, err)
	}
}

type byteCounter int

func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}

// TestSinkOfLostSandbox: output received before the sandbox was lost is passed to the
// sink.
func TestSinkOfLostSandbox(t *testing.T) {
	c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		s.send(helper.KindOutput, s.receive().ID, "last words")
		_ = s.conn.Close()
	})
	require.NoError(t, err)
	var got bytes.Buffer
	res, err := c.Execute(t.Context(), env.Command{Script: "x", Sink: &got})
	if !errors.Is(err, helper.ErrDisconnected) || got.String() != "last words" || res.Bytes != 10 {
		t.Errorf("the sink got %q, the result has %d bytes, %v", got.String(), res.Bytes, err)
	}
}

// TestFailingSink: a failing sink cancels its command only.
func TestFailingSink(t *testing.T) {
	c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) {
		run := s.receive()
		for range 100 {
			s.send(helper.KindOutput, run.ID, "x")
		}
		if f := s.receive(); f.Kind != helper.KindCancel || f.ID != run.ID {
			s.t.Errorf("the next frame is %q of %d, want a cancel", f.Kind, f.ID)
		}
		s.exit(run.ID, helper.Exit{Result: env.Result{Bytes: 100, Chars: 100, ExitCode: -1}})
		s.exit(s.receive().ID, helper.Exit{Result: env.Result{ExitCode: 7}})
		last := s.receive() // its sink fails when the report has already arrived
		s.send(helper.KindOutput, last.ID, "x")
		s.exit(last.ID, helper.Exit{Result: env.Result{Bytes: 1, Chars: 1}})
	})
	require.NoError(t, err)
	broken := writer(func([]byte) (int, error) { return 0, errFull })
	if _, err = c.Execute(t.Context(), env.Command{Script: "x", Sink: broken, Timeout: time.Hour}); !errors.Is(err, env.ErrSink) || !errors.Is(err, errFull) {
		t.Errorf("%v, want the sink's error", err)
	}
	if res, err := c.Execute(t.Context(), env.Command{Script: "y"}); err != nil || res.ExitCode != 7 {
		t.Errorf("the next command: %+v, %v", res, err)
	}
	if _, err = c.Execute(t.Context(), env.Command{Script: "z", Sink: broken}); !errors.Is(err, env.ErrSink) {
		t.Errorf("at the end: %v, want the sink's error", err)
	}
}

var errFull = errors.New("disk full")

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
