package events

import "slices"

// queue holds events for one subscriber, in their order and within bounds. When
// there are too many, the oldest pieces of texts and outputs go first, then the
// oldest of the others, and endings last; where something went there is a Lost.
type queue struct {
	size  int
	items []Stamped
	count int // of items that are no Lost
	bytes int
}

// rank is the order in which events go.
type rank int

const (
	piece  rank = iota // a delta, a chunk
	common             // what is no other
	ending             // Ended
	gone               // Lost
)

func rankOf(e Event) rank {
	switch e.(type) {
	case TextDelta, OutputChunk:
		return piece
	case Ended:
		return ending
	case Lost:
		return gone
	}
	return common
}

func (q *queue) empty() bool { return len(q.items) == 0 }

// add puts an event at the end, and lets go what is too much.
func (q *queue) add(s Stamped) {
	if q.count < q.size || !q.join(s) {
		q.items = append(q.items, s)
		q.count++
		q.bytes += size(s.Event)
	}
	if q.count > q.size || q.bytes > MaxBytes {
		for r := piece; r <= ending; r++ {
			q.drop(r)
		}
	}
}

// drop lets events of a rank go until there is some room: each takes a walk over
// the queue, which is not made for every event. One event stays in any case, so
// that something is told however long it is.
func (q *queue) drop(r rank) {
	kept := q.items[:0]
	for _, s := range q.items {
		if rankOf(s.Event) == r && q.count > 1 && (q.count > q.size-q.size/8 || q.bytes > MaxBytes-MaxBytes/8) {
			q.forget(s)
			s.Event = Lost{Count: 1}
		}
		if n := len(kept); n > 0 {
			before, ok := kept[n-1].Event.(Lost)
			if l, ok2 := s.Event.(Lost); ok && ok2 { // one for several in a row
				s.Event = Lost{Count: before.Count + l.Count}
				kept = kept[:n-1]
			}
		}
		kept = append(kept, s)
	}
	clear(q.items[len(kept):])
	q.items = kept
}

func (q *queue) forget(s Stamped) {
	q.count--
	q.bytes -= size(s.Event)
}

// take is the oldest of all.
func (q *queue) take() (Stamped, bool) {
	if q.empty() {
		return Stamped{}, false
	}
	s := q.items[0]
	q.items[0] = Stamped{}
	q.items = q.items[1:]
	if rankOf(s.Event) != gone {
		q.forget(s)
	}
	return s, true
}

// joint bounds what pieces are joined to, in bytes: joining copies.
const joint = 4 << 10

// join adds a piece to the newest item, where that is its beginning.
func (q *queue) join(s Stamped) bool {
	if q.empty() {
		return false
	}
	last := &q.items[len(q.items)-1]
	before := size(last.Event)
	if before+size(s.Event) > joint {
		return false
	}
	switch e := s.Event.(type) {
	case TextDelta:
		begun, ok := last.Event.(TextDelta)
		if !ok || begun.Step != e.Step || begun.Thinking != e.Thinking || e.Restart {
			return false
		}
		begun.Text += e.Text
		last.Event = begun
	case OutputChunk:
		begun, ok := last.Event.(OutputChunk)
		if !ok || begun.Step != e.Step {
			return false
		}
		begun.Data = slices.Concat(begun.Data, e.Data) // others have the old one
		last.Event = begun
	default:
		return false
	}
	last.Seq, last.Time = s.Seq, s.Time
	q.bytes += size(last.Event) - before
	return true
}

// overhead is about what an event takes beside its texts.
const overhead = 256

// size is about what an event takes, in bytes.
func size(e Event) int {
	n := overhead
	switch e := e.(type) {
	case Lost:
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
	case Told:
		n += len(e.Text)
	}
	return n // an Ended stays whatever it takes, and is to push nothing out
}
