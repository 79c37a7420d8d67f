// Package events publishes what an agent does, as it happens, to terminals,
// logs and programs that embed mini.
//
// The agent publishes to a Bus. Each subscriber has its own queue, bounded in
// events and bytes. Publishing never blocks. A slow subscriber first misses
// pieces of texts and outputs; a Dropped event counts the missed events. The
// newest outcome is never dropped.
//
//	bus := events.NewBus()
//	defer bus.Close()
//	sub := bus.Subscribe(0)
//	go func() {
//		for e := range sub.All(ctx) {
//			if d, ok := e.Event.(events.TextDelta); ok {
//				fmt.Print(d.Text)
//			}
//		}
//	}()
//	out := a.Run(ctx, agent.Session{Events: bus, ...})
//
// The permanent record is the journal (package trajectories). Subscribers
// cannot change a run. Writer writes events as JSON lines, and Decode reads
// them; see docs/events.md.
package events

import (
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bus delivers published events to subscribers. Its methods are safe for
// concurrent use. A nil Bus publishes nothing.
type Bus struct {
	hasSubscribers atomic.Bool // len(subs) > 0, readable without the lock

	mu     sync.Mutex // also guards the subscriptions
	seq    uint64
	subs   []*Subscription
	closed bool
}

// NewBus returns a bus without subscribers.
func NewBus() *Bus { return &Bus{} }

// HasSubscribers reports whether there is a subscriber. Callers use it to avoid
// building events that no one receives.
func (b *Bus) HasSubscribers() bool { return b != nil && b.hasSubscribers.Load() }

// Publish adds an event that has a line to the queues of all subscribers without
// blocking. The caller must not change what e points to. Events that one goroutine
// publishes stay in order.
func (b *Bus) Publish(e Event) {
	if !b.HasSubscribers() || e.Kind() == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.subs) == 0 {
		return
	}
	b.seq++
	envelope := Envelope{Seq: b.seq, Time: time.Now(), Event: e}
	for _, s := range b.subs {
		s.queue.add(envelope)
		s.wake()
	}
}

// LastSeq returns the sequence number of the newest event; 0 if there is none.
func (b *Bus) LastSeq() uint64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// DefaultQueueSize is the default number of events in a subscriber's queue.
const DefaultQueueSize = 1024

// MaxQueueBytes is the approximate limit of the size of a subscriber's queue,
// in bytes. A single larger event is still queued.
const MaxQueueBytes = 4 << 20

// Subscribe returns a subscription to all later events, with a queue of size
// events; 0 or less means DefaultQueueSize. The queue grows on demand. The
// caller must close the subscription or the bus.
func (b *Bus) Subscribe(size int) *Subscription {
	if b == nil {
		b = &Bus{closed: true}
	}
	if size <= 0 {
		size = DefaultQueueSize
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Subscription{bus: b, ready: make(chan struct{}, 1), queue: queue{size: size}, ended: b.closed}
	if !b.closed {
		b.subs = append(b.subs, s)
		b.hasSubscribers.Store(true)
	}
	return s
}

// Close ends all subscriptions. Subscribers can still read their queued events.
// Later events are discarded. A second call does nothing.
func (b *Bus) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range slices.Clone(b.subs) {
		s.end()
	}
}

// Subscription is a subscriber's queue of events. Its methods are safe for
// concurrent use.
type Subscription struct {
	bus   *Bus
	ready chan struct{} // capacity 1: a token means that there may be an event
	queue queue
	ended bool // no more events will come
}

// end removes the subscription from the bus. The subscriber can still read the queued
// events and then gets io.EOF. The caller holds the lock.
func (s *Subscription) end() {
	s.bus.subs = slices.DeleteFunc(s.bus.subs, func(o *Subscription) bool { return o == s })
	s.bus.hasSubscribers.Store(len(s.bus.subs) > 0)
	s.ended = true
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
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
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
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	s.queue = queue{size: s.queue.size}
	s.end()
}
