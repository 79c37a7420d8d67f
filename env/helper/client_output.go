package helper

import (
	"fmt"
	"io"
	"sync"

	"github.com/minibench/mini/env"
)

// outputStream passes output to env.Command.OnOutput and env.Command.Sink until the
// call ends.
type outputStream struct {
	mu       sync.Mutex
	onOutput func(chunk []byte) // may be nil
	sink     io.Writer          // nil if there is none, or it has failed
	failures chan error         // the error of the sink; capacity 1; nil if there never was a sink
	failed   error
	closed   bool
}

// write is called by the reader. It blocks while onOutput or the sink does.
func (s *outputStream) write(chunk []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(chunk) == 0 {
		return
	}
	if s.onOutput != nil {
		s.onOutput(chunk)
	}
	if s.sink == nil {
		return
	}
	n, err := s.sink.Write(chunk)
	if err == nil && n < len(chunk) {
		err = io.ErrShortWrite
	}
	if err != nil {
		s.failed = fmt.Errorf("%w: %w", env.ErrSink, err)
		s.failures <- s.failed
		s.sink = nil
	}
}

// close waits for a running write, which is the last one, and returns the error of the
// sink.
func (s *outputStream) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.failed
}
