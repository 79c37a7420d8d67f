package events

import (
	"context"
	"io"
	"iter"
	"sync"
)

// Subscription is what one subscriber has not read yet. Its methods are safe
// for concurrent use.
type Subscription struct {
	leave func()        // the bus; nil without one
	ready chan struct{} // of capacity one: a token says that there may be something

	mu    sync.Mutex
	queue queue
	ended bool // nothing more will come
}

func newSubscription(size int) *Subscription {
	if size <= 0 {
		size = DefaultSize
	}
	return &Subscription{ready: make(chan struct{}, 1), queue: queue{size: size}}
}

// push is called by the bus.
func (s *Subscription) push(e Stamped) {
	s.mu.Lock()
	s.queue.add(e)
	s.mu.Unlock()
	s.wake()
}

// end lets what waits be read, and then io.EOF.
func (s *Subscription) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // whoever takes the token finds this, too
	}
}

// Next waits for the next event. The error is io.EOF when there will be no
// other, or the context's cause.
func (s *Subscription) Next(ctx context.Context) (Stamped, error) {
	for {
		if e, ok, ended := s.take(); ok {
			return e, nil
		} else if ended {
			return Stamped{}, io.EOF
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Stamped{}, context.Cause(ctx)
		}
	}
}

// take is the next event, if there is one, or whether there will be none. It
// passes the token on to others that wait.
func (s *Subscription) take() (e Stamped, ok, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok = s.queue.take()
	if !s.queue.empty() || s.ended {
		s.wake()
	}
	return e, ok, s.ended
}

// All are the events until there are no more, or ctx ends.
func (s *Subscription) All(ctx context.Context) iter.Seq[Stamped] {
	return func(yield func(Stamped) bool) {
		for {
			e, err := s.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Close drops what was not read, and gets no more. A second call does nothing.
func (s *Subscription) Close() {
	if s.leave != nil {
		s.leave()
	}
	s.mu.Lock()
	s.queue = queue{size: s.queue.size}
	s.mu.Unlock()
	s.end()
}
