package events

import (
	"slices"

	"github.com/minibench/mini/trajectories"
)

// queue holds the events of one subscriber in order and within bounds. If there
// are too many, it drops the oldest pieces of texts and outputs first, then the
// oldest other events, then the oldest outcomes. A Dropped event stands
// in each gap.
type queue struct {
	size  int // maximum count
	items []Envelope
	count int // number of items that are not Dropped
	bytes int // approximate size of the items
}

// priority orders events by when they are dropped, the first to be dropped
// first.
type priority int

const (
	streamed priority = iota // TextDelta, OutputChunk
	ordinary                 // all others
	final                    // outcomes
	dropped                  // Dropped
)

func priorityOf(e Event) priority {
	switch Content(e).(type) {
	case TextDelta, OutputChunk:
		return streamed
	case trajectories.Outcome:
		return final
	case Dropped:
		return dropped
	}
	return ordinary
}

func (q *queue) empty() bool { return len(q.items) == 0 }

// add appends an event and drops events beyond the bounds.
func (q *queue) add(e Envelope) {
	if q.count < q.size || !q.merge(e) {
		q.items = append(q.items, e)
		q.count++
		q.bytes += size(e.Event)
	}
	if q.count > q.size || q.bytes > MaxQueueBytes {
		for p := streamed; p <= final; p++ {
			q.drop(p)
		}
	}
}

// drop drops the oldest events of a priority until an eighth of the queue is
// free or none of them is left, so that add rarely has to scan the queue. It
// always keeps one event, however large.
func (q *queue) drop(p priority) {
	remaining := q.items[:0]
	for _, e := range q.items {
		if priorityOf(e.Event) == p && q.count > 1 && (q.count > q.size-q.size/8 || q.bytes > MaxQueueBytes-MaxQueueBytes/8) {
			q.subtract(e)
			e.Event = Dropped{Count: 1}
		}
		if n := len(remaining); n > 0 {
			previous, ok := remaining[n-1].Event.(Dropped)
			if next, isDropped := e.Event.(Dropped); ok && isDropped { // merge consecutive gaps
				e.Event = Dropped{Count: previous.Count + next.Count}
				remaining = remaining[:n-1]
			}
		}
		remaining = append(remaining, e)
	}
	clear(q.items[len(remaining):])
	q.items = remaining
}

func (q *queue) subtract(e Envelope) {
	q.count--
	q.bytes -= size(e.Event)
}

// pop removes and returns the oldest event.
func (q *queue) pop() (Envelope, bool) {
	if q.empty() {
		return Envelope{}, false
	}
	e := q.items[0]
	q.items[0] = Envelope{}
	q.items = q.items[1:]
	if priorityOf(e.Event) != dropped {
		q.subtract(e)
	}
	return e, true
}

// maxMerged bounds the size of a merged piece, in bytes, because merging copies
// it.
const maxMerged = 4 << 10

// merge appends a piece to the newest item if both belong to the same text or
// output and fit into maxMerged. It reports whether it did.
func (q *queue) merge(item Envelope) bool {
	if q.empty() {
		return false
	}
	last := &q.items[len(q.items)-1]
	before := size(last.Event)
	if before+size(item.Event) > maxMerged {
		return false
	}
	switch e := item.Event.(type) {
	case TextDelta:
		previous, ok := last.Event.(TextDelta)
		if !ok || previous.Step != e.Step || previous.Thinking != e.Thinking || e.Restart {
			return false
		}
		previous.Text += e.Text
		last.Event = previous
	case OutputChunk:
		previous, ok := last.Event.(OutputChunk)
		if !ok || previous.Step != e.Step {
			return false
		}
		previous.Data = slices.Concat(previous.Data, e.Data) // other subscribers share the old slice
		last.Event = previous
	default:
		return false
	}
	last.Seq, last.Time = item.Seq, item.Time
	q.bytes += size(last.Event) - before
	return true
}

// overhead is the approximate size of an event without its texts, in bytes.
const overhead = 256

// size returns the approximate size of an event in bytes.
func size(e Event) int {
	n := overhead
	switch e := Content(e).(type) {
	case Dropped:
		return 0
	case RunStarted:
		n += len(e.Task)
	case PhaseStarted:
		n += len(e.Command)
	case TextDelta:
		n += len(e.Text)
	case OutputChunk:
		n += len(e.Data)
	case FilesChanged:
		n += len(e.Patch) + len(e.Text())
	case trajectories.Message:
		n += len(e.Content) + len(e.Reasoning)
	case trajectories.CommandDecision:
		n += len(e.Command) + len(e.Reason)
	case trajectories.Execution:
		n += len(e.Command)
	}
	return n // an outcome counts as small so that it does not displace others
}
