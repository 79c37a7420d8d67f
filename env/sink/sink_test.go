package sink_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func unasked(t *testing.T) func(error) {
	return func(err error) { t.Errorf("failed: %v", err) }
}

func TestPassesAll(t *testing.T) {
	var got bytes.Buffer
	s := sink.New(&got, unasked(t))
	piece := []byte("0123456789\n")
	for range 10_000 {
		if n, err := s.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	piece[0] = 'x' // what was written is the sink's own
	if err := s.Close(); err != nil || got.String() != strings.Repeat("0123456789\n", 10_000) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

// broken fails after some writes.
type broken struct {
	left int
	err  error
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, b.err
	}
	return len(p), nil
}

func TestWriterBreaks(t *testing.T) {
	full := errors.New("disk full")
	for _, c := range []struct {
		name string
		err  error
		want error
	}{{"error", full, full}, {"too little", nil, io.ErrShortWrite}} {
		t.Run(c.name, func(t *testing.T) {
			told := make(chan error, 2)
			s := sink.New(&broken{left: 3, err: c.err}, func(err error) { told <- err })
			var err error
			for err == nil {
				_, err = s.Write([]byte("x"))
			}
			if !errors.Is(err, env.ErrSink) || !errors.Is(err, c.want) {
				t.Errorf("write: %v", err)
			}
			if err := <-told; !errors.Is(err, env.ErrSink) || !errors.Is(err, c.want) {
				t.Errorf("told: %v", err)
			}
			if err := s.Close(); !errors.Is(err, c.want) || len(told) > 0 {
				t.Errorf("close: %v, told %d times more", err, len(told))
			}
		})
	}
}

// stuck takes nothing until it is let go.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

func TestWriterIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := make(stuck)
		var told []error
		s := sink.New(w, func(err error) { told = append(told, err) })
		start := time.Now()
		var err error
		for n := 0; err == nil; n++ {
			if _, err = s.Write([]byte("x")); n > 100 {
				t.Fatal("it takes without end")
			}
		}
		if took := time.Since(start); took != sink.Patience || !errors.Is(err, env.ErrSink) {
			t.Errorf("%v after %s", err, took)
		}
		if _, err := s.Write([]byte("x")); err == nil || time.Since(start) != sink.Patience {
			t.Errorf("a write after that: %v, after %s", err, time.Since(start))
		}
		if err := s.Close(); !errors.Is(err, env.ErrSink) || len(told) != 1 {
			t.Errorf("close: %v; told %v", err, told)
		}
		close(w)
	})
}

func TestSlowAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := make(stuck)
		s := sink.New(w, unasked(t))
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(sink.Patience / 2)
			close(w)
		}()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// TestWaitingAtTheEnd: what was passed on is written, though the end came first.
func TestWaitingAtTheEnd(t *testing.T) {
	var got bytes.Buffer
	gate := make(stuck)
	s := sink.New(io.MultiWriter(gate, &got), unasked(t))
	for range 10 {
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	if err := s.Close(); err != nil || got.String() != "xxxxxxxxxx" {
		t.Errorf("%q, %v", got.String(), err)
	}
}

// TestAfterTheEnd: what comes then is refused, not lost.
func TestAfterTheEnd(t *testing.T) {
	var got bytes.Buffer
	told := 0
	s := sink.New(&got, func(error) { told++ })
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	for range 2 {
		if n, err := s.Write([]byte("y")); n != 0 || !errors.Is(err, env.ErrSink) {
			t.Errorf("a write then: %d, %v", n, err)
		}
	}
	if got.String() != "x" || told != 1 {
		t.Errorf("%q, told %d times", got.String(), told)
	}
}
