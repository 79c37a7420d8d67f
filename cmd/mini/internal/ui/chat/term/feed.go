package term

import (
	"sync"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// questionWithdrawn withdraws a question.
type questionWithdrawn struct{ question *pendingQuestion }

// pendingQuestion is a question and the channel for its answer.
type pendingQuestion struct {
	chat.Question
	reply chan answer // has capacity 1; at most one answer is sent
}

type answer struct {
	text string
	err  error
}

// feed queues items for the Bubble Tea program.
type feed struct {
	mu      sync.Mutex
	items   []any // events.Event, chat.Notice, *pendingQuestion, questionWithdrawn
	state   *chat.State
	blocked bool          // not drained within closeTimeout
	dropped int           // number of events dropped while blocked
	ready   chan struct{} // has capacity 1
	drained chan struct{} // closed when the items are drained
}

func newFeed() *feed { return &feed{ready: make(chan struct{}, 1), drained: make(chan struct{})} }

// maxQueued is the queue length at which ShowEvent waits.
const maxQueued = 256

// waitForRoom waits until there is room for an event; false if the event is to be dropped. A
// slow terminal makes the session wait here, and its subscription drops chunks of output. A
// feed that is not drained at all, in the background or on a blocked terminal, does not block
// the session.
func (f *feed) waitForRoom(done <-chan struct{}) bool {
	for {
		f.mu.Lock()
		full, blocked, drained := len(f.items) >= maxQueued, f.blocked, f.drained
		if full && blocked {
			f.dropped++
		}
		f.mu.Unlock()
		if !full || blocked {
			return !full
		}
		select {
		case <-drained:
		case <-done:
			return false
		case <-time.After(closeTimeout):
			f.mu.Lock()
			f.blocked = f.drained == drained
			f.mu.Unlock()
		}
	}
}

// push appends an item. It does not block.
func (f *feed) push(item any) {
	f.mu.Lock()
	f.items = append(f.items, item)
	f.mu.Unlock()
	f.signal()
}

func (f *feed) setState(s chat.State) {
	f.mu.Lock()
	f.state = &s
	f.mu.Unlock()
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// drain removes and returns all items.
func (f *feed) drain() ([]any, *chat.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, state := f.items, f.state
	if f.dropped > 0 {
		items = append(items, events.Dropped{Count: f.dropped})
	}
	f.items, f.state, f.blocked, f.dropped = nil, nil, false, 0
	close(f.drained)
	f.drained = make(chan struct{})
	return items, state
}
