package events

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bus delivers published events to subscribers. Its methods are safe for
// concurrent use. A nil Bus publishes nothing.
type Bus struct {
	subscriberCount atomic.Int32 // len(subs), readable without the lock

	mu     sync.Mutex
	seq    uint64
	subs   []*Subscription
	closed bool
}

// NewBus returns a bus without subscribers.
func NewBus() *Bus { return &Bus{} }

// HasSubscribers reports whether there is a subscriber. Callers use it to avoid
// building events that no one receives.
func (b *Bus) HasSubscribers() bool { return b != nil && b.subscriberCount.Load() > 0 }

// Publish adds an event to the queues of all subscribers without blocking. The
// caller must not change what e points to. Events that one goroutine publishes
// stay in order.
func (b *Bus) Publish(e Event) {
	if b.HasSubscribers() {
		b.publish(e)
	}
}

func (b *Bus) publish(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.subs) == 0 {
		return
	}
	b.seq++
	envelope := Envelope{Seq: b.seq, Time: time.Now(), Event: e}
	for _, sub := range b.subs {
		sub.push(envelope)
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
	s := newSubscription(size)
	if b == nil {
		s.finish()
		return s
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.finish()
		return s
	}
	s.unsubscribe = func() { b.remove(s) }
	b.subs = append(b.subs, s)
	b.subscriberCount.Add(1)
	return s
}

func (b *Bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.subs, s); i >= 0 {
		b.subs = slices.Delete(b.subs, i, i+1)
		b.subscriberCount.Add(-1)
	}
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
	b.subscriberCount.Store(0)
	for _, s := range b.subs {
		s.finish()
	}
	b.subs = nil
}
