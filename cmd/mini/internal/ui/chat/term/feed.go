package term

import (
	"sync"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// questionWithdrawn is the item that withdraws a question.
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

// feed is a queue of items for the Bubble Tea program.
type feed struct {
	mu      sync.Mutex
	items   []any         // events.Content of an event, chat.Notice, *pendingQuestion, questionWithdrawn
	state   *chat.State   // newest state; nil if unchanged since the last drain
	blocked bool          // drain was not called for closeTimeout
	dropped int           // number of events dropped while blocked
	ready   chan struct{} // signals new items or a new state; has capacity 1
	drained chan struct{} // closed by the next drain
}

func newFeed() *feed { return &feed{ready: make(chan struct{}, 1), drained: make(chan struct{})} }

// maxQueued is the length of the queue at which ShowEvent starts to wait.
const maxQueued = 256

// waitForRoom waits until the queue has room for an event. It returns false if the caller must
// drop the event.
//
// If the terminal is slow, Session.Watch waits here, and its event subscription drops chunks of
// output. If nothing drains the feed for closeTimeout, because the process is in the background
// or the terminal blocks writes, waitForRoom stops waiting and the session continues.
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

// drain removes and returns all items and the new state.
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
