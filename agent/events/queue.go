package events

import "slices"

// queue holds the events of one subscriber in order and within bounds. If there
// are too many, it drops the oldest pieces of texts and outputs first, then the
// oldest other events, then RunEnded events. Each gap has a Dropped event.
type queue struct {
	size  int
	items []Envelope
	count int // number of items that are not Dropped
	bytes int
}

// priority is the order in which events are dropped.
type priority int

const (
	streamed priority = iota // TextDelta, OutputChunk
	ordinary                 // all others
	final                    // RunEnded
	dropped                  // Dropped
)

func priorityOf(e Event) priority {
	switch e.(type) {
	case TextDelta, OutputChunk:
		return streamed
	case RunEnded:
		return final
	case Dropped:
		return dropped
	}
	return ordinary
}

func (q *queue) empty() bool { return len(q.items) == 0 }

// add appends an event and drops events beyond the bounds.
func (q *queue) add(s Envelope) {
	if q.count < q.size || !q.merge(s) {
		q.items = append(q.items, s)
		q.count++
		q.bytes += size(s.Event)
	}
	if q.count > q.size || q.bytes > MaxQueueBytes {
		for r := streamed; r <= final; r++ {
			q.drop(r)
		}
	}
}

// drop drops events of a priority until an eighth of the queue is free, so that
// it does not scan the queue for every event. It always keeps one event,
// however large.
func (q *queue) drop(r priority) {
	remaining := q.items[:0]
	for _, s := range q.items {
		if priorityOf(s.Event) == r && q.count > 1 && (q.count > q.size-q.size/8 || q.bytes > MaxQueueBytes-MaxQueueBytes/8) {
			q.subtract(s)
			s.Event = Dropped{Count: 1}
		}
		if n := len(remaining); n > 0 {
			previous, ok := remaining[n-1].Event.(Dropped)
			if l, ok2 := s.Event.(Dropped); ok && ok2 { // merge consecutive gaps
				s.Event = Dropped{Count: previous.Count + l.Count}
				remaining = remaining[:n-1]
			}
		}
		remaining = append(remaining, s)
	}
	clear(q.items[len(remaining):])
	q.items = remaining
}

func (q *queue) subtract(s Envelope) {
	q.count--
	q.bytes -= size(s.Event)
}

// pop removes and returns the oldest event.
func (q *queue) pop() (Envelope, bool) {
	if q.empty() {
		return Envelope{}, false
	}
	s := q.items[0]
	q.items[0] = Envelope{}
	q.items = q.items[1:]
	if priorityOf(s.Event) != dropped {
		q.subtract(s)
	}
	return s, true
}

// maxMerged bounds merged pieces, in bytes, because merging copies.
const maxMerged = 4 << 10

// merge appends a piece to the newest item if both belong to the same text or
// output.
func (q *queue) merge(s Envelope) bool {
	if q.empty() {
		return false
	}
	last := &q.items[len(q.items)-1]
	before := size(last.Event)
	if before+size(s.Event) > maxMerged {
		return false
	}
	switch e := s.Event.(type) {
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
	last.Seq, last.Time = s.Seq, s.Time
	q.bytes += size(last.Event) - before
	return true
}

// overhead is the approximate size of an event without its texts, in bytes.
const overhead = 256

// size returns the approximate size of an event in bytes.
func size(e Event) int {
	n := overhead
	switch e := e.(type) {
	case Dropped:
		return 0
	case RunStarted:
		n += len(e.Task)
	case TextDelta:
		n += len(e.Text)
	case Replied:
		n += len(e.Text) + len(e.Reasoning)
	case Decided:
		n += len(e.Command) + len(e.Reason)
	case ActionStarted:
		n += len(e.Command)
	case OutputChunk:
		n += len(e.Data)
	case ActionEnded:
		n += len(e.Command)
	case FormatError:
		n += len(e.Text)
	case UserMessage:
		n += len(e.Text)
	}
	return n // a RunEnded counts as small so that it does not displace others
}
