package helper_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
