// Package sink passes the output of a command on to a writer that may be slow,
// stuck or broken (env.Command.Sink), so that none of this holds up the
// sandbox. Standard library and env only.
//
//	s := sink.New(w, func(err error) { cancel(err) })
//	// ... s.Write(piece), by the one goroutine that reads the output ...
//	err := s.Close()
package sink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minibench/mini/env"
)

const (
	// Patience is how long a writer may take for what is ahead of it before it
	// counts as stuck. Disks of networks have bad moments. It is less than what
	// a helper's report may be late.
	Patience = 20 * time.Second
	// ahead is how many pieces may wait; the writer of a command's output is
	// held up when there are more.
	ahead = 16
)

// Sink is a writer in front of another one. Write is for one goroutine at a
// time.
type Sink struct {
	pieces chan []byte
	ending chan struct{} // closed by Close: what waits is written, and no more comes
	broken chan struct{} // closed when err is set
	done   chan struct{} // closed when nothing more is written
	failed func(error)

	end  sync.Once
	once sync.Once
	err  error // the first failure
}

// New passes what is written to it on to w, from a goroutine of its own, which
// ends with Close; one that is stuck in w ends when w lets it go. failed is
// called, once at most, when w breaks or is stuck.
func New(w io.Writer, failed func(error)) *Sink {
	s := &Sink{
		pieces: make(chan []byte, ahead), ending: make(chan struct{}),
		broken: make(chan struct{}), done: make(chan struct{}), failed: failed,
	}
	go s.pass(w)
	return s
}

func (s *Sink) pass(w io.Writer) {
	defer close(s.done)
	for {
		select {
		case p := <-s.pieces:
			if !s.write(w, p) {
				return
			}
			continue
		case <-s.broken:
			return
		case <-s.ending:
		}
		select { // what waits comes first
		case p := <-s.pieces:
			if !s.write(w, p) {
				return
			}
		default:
			return
		}
	}
}

func (s *Sink) write(w io.Writer, p []byte) bool {
	select {
	case <-s.broken: // it took too long, and nobody waits any more
		return false
	default:
	}
	n, err := w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		s.fail(err)
	}
	return err == nil
}

// Write takes a copy of p. It waits while the writer is far behind, but no
// longer than Patience. The error wraps env.ErrSink.
func (s *Sink) Write(p []byte) (int, error) {
	select {
	case <-s.broken:
		return 0, s.err
	case <-s.ending:
		s.fail(errEnded)
		<-s.broken
		return 0, s.err
	default:
	}
	piece := bytes.Clone(p)
	select {
	case s.pieces <- piece: // mostly, and without a timer
		return len(p), nil
	default:
	}
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case s.pieces <- piece:
		return len(p), nil
	case <-late.C:
		s.fail(errStuck)
	case <-s.broken:
	case <-s.done:
		s.fail(errEnded)
	}
	<-s.broken
	return 0, s.err
}

var (
	// errStuck says that a writer does not come back.
	errStuck = fmt.Errorf("what takes the output has taken none for %s", Patience)
	// errEnded says that output came after Close.
	errEnded = errors.New("nobody takes the output any more")
)

// Close waits until all is written that was passed on until now, for Patience
// at most, and returns the first failure. The error wraps env.ErrSink. A second
// call returns the same.
func (s *Sink) Close() error {
	s.end.Do(func() { close(s.ending) })
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case <-s.done:
	case <-s.broken:
	case <-late.C:
		s.fail(errStuck)
	}
	select {
	case <-s.broken:
		return s.err
	default:
		return nil
	}
}

func (s *Sink) fail(err error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("%w: %w", env.ErrSink, err)
		close(s.broken)
		s.failed(s.err)
	})
}
