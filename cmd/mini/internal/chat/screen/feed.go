package screen

import (
	"sync"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// The feed holds about so much for a screen that does not keep up, or that is
// in the background; then the oldest goes.
const (
	maxWaiting      = 4096    // items
	maxWaitingBytes = 1 << 20 // of texts and outputs
)

// lost stands in the feed where things were dropped.
type lost struct {
	items int
	bytes int64
}

// withdrawn takes a question back.
type withdrawn struct{ question *asked }

// asked is a question that waits for its answer.
type asked struct {
	chat.Question
	reply chan answer // of one; answered once at most
}

type answer struct {
	text string
	err  error
}

// feed is what the program has not seen yet. Its methods never wait.
type feed struct {
	mu      sync.Mutex
	items   []any // events.Event, chat.Note, *asked, withdrawn, lost
	bytes   int
	state   *chat.State
	arrived chan struct{} // of one
}

func newFeed() *feed { return &feed{arrived: make(chan struct{}, 1)} }

func (f *feed) push(item any) {
	f.mu.Lock()
	if !f.join(item) {
		f.items = append(f.items, item)
	}
	f.bytes += weight(item)
	for len(f.items) > maxWaiting || f.bytes > maxWaitingBytes {
		if !f.dropOldest() {
			break
		}
	}
	f.mu.Unlock()
	f.wake()
}

func (f *feed) setState(s chat.State) {
	f.mu.Lock()
	f.state = &s
	f.mu.Unlock()
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// take is everything that waits.
func (f *feed) take() ([]any, *chat.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, state := f.items, f.state
	f.items, f.bytes, f.state = nil, 0, nil
	return items, state
}

// join puts a piece to the one before it.
func (f *feed) join(item any) bool {
	if len(f.items) == 0 {
		return false
	}
	last := &f.items[len(f.items)-1]
	switch e := item.(type) {
	case events.OutputChunk:
		if p, ok := (*last).(events.OutputChunk); ok && p.Step == e.Step && len(p.Data) < maxPiece {
			p.Data = append(p.Data[:len(p.Data):len(p.Data)], e.Data...)
			*last = p
			return true
		}
	case events.TextDelta:
		p, ok := (*last).(events.TextDelta)
		if ok && p.Step == e.Step && p.Thinking == e.Thinking && !e.Restart && len(p.Text) < maxPiece {
			p.Text += e.Text
			*last = p
			return true
		}
	}
	return false
}

// maxPiece is about how long pieces are joined to, in bytes: the work to do so
// must not grow with what waits.
const maxPiece = 16 << 10

// dropOldest drops what can be missed: outputs and texts first, since what
// follows them makes up for it; never a question.
func (f *feed) dropOldest() bool {
	at := -1
	for i, item := range f.items {
		switch item.(type) {
		case *asked, withdrawn, lost:
			continue
		case events.OutputChunk, events.TextDelta:
			at = i
		default:
			if at < 0 {
				at = i
			}
			continue
		}
		break
	}
	if at < 0 {
		return false
	}
	gone := lost{items: 1, bytes: int64(weight(f.items[at]))}
	f.bytes -= int(gone.bytes)
	if at > 0 {
		if before, ok := f.items[at-1].(lost); ok {
			f.items[at-1] = lost{before.items + 1, before.bytes + gone.bytes}
			f.items = append(f.items[:at], f.items[at+1:]...)
			return true
		}
	}
	f.items[at] = gone
	return true
}

// weight of an item is about how many bytes it holds.
func weight(item any) int {
	switch e := item.(type) {
	case events.OutputChunk:
		return len(e.Data)
	case events.TextDelta:
		return len(e.Text)
	case events.Replied:
		return len(e.Text) + len(e.Reasoning)
	case events.ActionStarted:
		return len(e.Command)
	case events.ActionEnded:
		return len(e.Command)
	case events.ChildWorked:
		return len(e.Command) + len(e.Task)
	case events.Told:
		return len(e.Text)
	case chat.Note:
		return len(e.Text)
	}
	return 0
}
