package events

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bus passes on what is published to whoever has subscribed. Its methods are
// safe for concurrent use. A nil Bus publishes nothing.
type Bus struct {
	listeners atomic.Int32 // the length of subs, for those who only look

	mu     sync.Mutex
	seq    uint64
	subs   []*Subscription
	closed bool
}

// NewBus returns a bus without subscribers.
func NewBus() *Bus { return &Bus{} }

// Wanted says whether anybody listens. It is for those to whom an event is
// some work to make.
func (b *Bus) Wanted() bool { return b != nil && b.listeners.Load() > 0 }

// Publish passes an event on to the subscribers' queues, and never waits for
// one of them. What e points to is not to be changed afterwards. Events of one
// goroutine come in its order.
func (b *Bus) Publish(e Event) {
	if b.Wanted() {
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
	s := Stamped{Seq: b.seq, Time: time.Now(), Event: e}
	for _, sub := range b.subs {
		sub.push(s)
	}
}

// Newest is the number of the newest event: a subscriber that was there all the
// time and has read it has read all that was published before.
func (b *Bus) Newest() uint64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// DefaultSize is how many events a queue holds for a subscriber that names no
// number.
const DefaultSize = 1024

// MaxBytes is about how many bytes of texts and outputs the queue of a
// subscriber holds. One event that is longer is held all the same.
const MaxBytes = 4 << 20

// Subscribe returns what is published from now on, through a queue of so many
// events; 0 or less is DefaultSize. The queue takes no memory before it is
// needed. Whoever subscribes closes the subscription, or the bus.
func (b *Bus) Subscribe(size int) *Subscription {
	s := newSubscription(size)
	if b == nil {
		s.end()
		return s
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.end()
		return s
	}
	s.leave = func() { b.remove(s) }
	b.subs = append(b.subs, s)
	b.listeners.Add(1)
	return s
}

func (b *Bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.subs, s); i >= 0 {
		b.subs = slices.Delete(b.subs, i, i+1)
		b.listeners.Add(-1)
	}
}

// Close ends the subscriptions, each once its subscriber has read what waits
// for it. What is published later goes nowhere. A second call does nothing.
func (b *Bus) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.listeners.Store(0)
	for _, s := range b.subs {
		s.end()
	}
	b.subs = nil
}
