package events

import (
	"context"
	"io"
	"iter"
	"sync"
)

// Subscription is a subscriber's queue of events. Its methods are safe for
// concurrent use.
type Subscription struct {
	unsubscribe func()        // removes the subscription from the bus; nil if there is no bus
	ready       chan struct{} // capacity 1: a token means that there may be an event

	mu    sync.Mutex
	queue queue
	ended bool // no more events will come
}

func newSubscription(size int) *Subscription {
	if size <= 0 {
		size = DefaultQueueSize
	}
	return &Subscription{ready: make(chan struct{}, 1), queue: queue{size: size}}
}

// push adds an event that the bus publishes.
func (s *Subscription) push(e Envelope) {
	s.mu.Lock()
	s.queue.add(e)
	s.mu.Unlock()
	s.wake()
}

// finish ends the subscription. The subscriber can still read the queued events
// and then gets io.EOF.
func (s *Subscription) finish() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // a token is pending already
	}
}

// Next waits for the next event. The error is io.EOF after the last event, or
// the cause of ctx if it ends.
func (s *Subscription) Next(ctx context.Context) (Envelope, error) {
	for {
		if e, ok, ended := s.take(); ok {
			return e, nil
		} else if ended {
			return Envelope{}, io.EOF
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Envelope{}, context.Cause(ctx)
		}
	}
}

// take returns the next event, if any, and whether the subscription has ended.
// If other goroutines may be waiting for a further event or the end, it puts
// the token back.
func (s *Subscription) take() (e Envelope, ok, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok = s.queue.pop()
	if !s.queue.empty() || s.ended {
		s.wake()
	}
	return e, ok, s.ended
}

// All yields the events until there are no more or ctx ends.
func (s *Subscription) All(ctx context.Context) iter.Seq[Envelope] {
	return func(yield func(Envelope) bool) {
		for {
			e, err := s.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Close discards the queued events and ends the subscription. A second call
// does nothing.
func (s *Subscription) Close() {
	if s.unsubscribe != nil {
		s.unsubscribe()
	}
	s.mu.Lock()
	s.queue = queue{size: s.queue.size}
	s.mu.Unlock()
	s.finish()
}
