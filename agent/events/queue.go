package events

import "slices"

// queue holds events for one subscriber, within bounds. When there are too
// many, the oldest pieces of texts and outputs go first, then the oldest of the
// others, and endings last; where something went there is a Lost.
//
// Items are in one list, in their order, and each that may go in one of the
// lines of those that go before others: whatever happens takes the same time
// however long the queue is.
type queue struct {
	size        int
	first, last *item
	count       int // of items that are no Lost
	bytes       int
	lines       [ranks]line
}

// The order in which events go.
const (
	piece  = iota // a delta, a chunk
	common        // what is no other
	ending        // Ended
	ranks
)

type item struct {
	Stamped
	before, after *item // in the queue
	behind        *item // in the line of its rank
	bytes         int
}

// line is those of one rank, the oldest first.
type line struct{ first, last *item }

func (l *line) add(i *item) {
	if l.last == nil {
		l.first = i
	} else {
		l.last.behind = i
	}
	l.last = i
}

func (l *line) pop() *item {
	i := l.first
	if l.first = i.behind; l.first == nil {
		l.last = nil
	}
	i.behind = nil
	return i
}

func rank(e Event) int {
	switch e.(type) {
	case TextDelta, OutputChunk:
		return piece
	case Ended:
		return ending
	}
	return common
}

func (q *queue) empty() bool { return q.first == nil }

// add puts an event at the end, and lets go what is too much.
func (q *queue) add(s Stamped) {
	if q.count >= q.size && q.join(s) {
		q.shrink()
		return
	}
	i := &item{Stamped: s, bytes: size(s.Event), before: q.last}
	if q.last == nil {
		q.first = i
	} else {
		q.last.after = i
	}
	q.last = i
	q.lines[rank(s.Event)].add(i)
	q.count++
	q.bytes += i.bytes
	q.shrink()
}

// shrink lets events go until the rest is within the bounds. One stays in any
// case, so that something is told however long it is.
func (q *queue) shrink() {
	for q.count > 1 && (q.count > q.size || q.bytes > MaxBytes) {
		for r := range q.lines {
			if q.lines[r].first != nil {
				q.lose(q.lines[r].pop())
				break
			}
		}
	}
}

// lose puts a Lost in the place of an item, one for several in a row.
func (q *queue) lose(i *item) {
	q.forget(i)
	lost := Lost{Count: 1}
	i.bytes = 0
	for _, other := range []*item{i.before, i.after} {
		if other == nil {
			continue
		}
		if l, ok := other.Event.(Lost); ok {
			q.remove(other)
			lost.Count += l.Count
			if other.Seq > i.Seq {
				i.Seq, i.Time = other.Seq, other.Time
			}
		}
	}
	i.Event = lost
}

func (q *queue) forget(i *item) {
	q.count--
	q.bytes -= i.bytes
}

// remove takes an item out of the list.
func (q *queue) remove(i *item) {
	if i.before == nil {
		q.first = i.after
	} else {
		i.before.after = i.after
	}
	if i.after == nil {
		q.last = i.before
	} else {
		i.after.before = i.before
	}
}

// take is the oldest of all.
func (q *queue) take() (Stamped, bool) {
	i := q.first
	if i == nil {
		return Stamped{}, false
	}
	q.remove(i)
	if _, lost := i.Event.(Lost); !lost {
		q.lines[rank(i.Event)].pop() // being the oldest of all, it is the first there
		q.forget(i)
	}
	return i.Stamped, true
}

// joint bounds what pieces are joined to, in bytes: joining copies.
const joint = 4 << 10

// join adds a piece to the newest item, where that is its beginning.
func (q *queue) join(s Stamped) bool {
	i := q.last
	if i == nil || i.bytes+size(s.Event) > joint {
		return false
	}
	switch e := s.Event.(type) {
	case TextDelta:
		begun, ok := i.Event.(TextDelta)
		if !ok || begun.Step != e.Step || begun.Thinking != e.Thinking || e.Restart {
			return false
		}
		begun.Text += e.Text
		i.Event = begun
	case OutputChunk:
		begun, ok := i.Event.(OutputChunk)
		if !ok || begun.Step != e.Step {
			return false
		}
		begun.Data = slices.Concat(begun.Data, e.Data) // others have the old one
		i.Event = begun
	default:
		return false
	}
	i.Seq, i.Time = s.Seq, s.Time
	more := size(i.Event) - i.bytes
	i.bytes += more
	q.bytes += more
	return true
}

// overhead is about what an event takes beside its texts.
const overhead = 256

// size is about what an event takes, in bytes.
func size(e Event) int {
	n := overhead
	switch e := e.(type) {
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
