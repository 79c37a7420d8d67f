package governor

import "time"

// span is how long something counts: a minute, and a second more, since
// requests do not arrive as evenly as they are sent. A token bucket would let
// through twice its size in the first minute, and providers count that.
const span = 61 * time.Second

// window bounds what happens in any minute.
type window struct {
	limit   int64 // 0: no bound
	entries []*entry
	sum     int64
}

type entry struct {
	at   time.Time
	n    int64
	gone bool
}

// add takes something in, whether or not there is room.
func (w *window) add(now time.Time, n int64) *entry {
	w.expire(now)
	e := &entry{at: now, n: n}
	w.entries = append(w.entries, e)
	w.sum += n
	return e
}

// correct says what it really was.
func (w *window) correct(e *entry, n int64) {
	if !e.gone {
		w.sum += n - e.n
		e.n = n
	}
}

// wait is how long until there is room for n. What is larger than the limit has
// room when there is nothing else.
func (w *window) wait(now time.Time, n int64) time.Duration {
	w.expire(now)
	if w.limit <= 0 {
		return 0
	}
	left, wait := w.sum, time.Duration(0)
	for _, e := range w.entries {
		if left <= 0 || left+n <= w.limit {
			break
		}
		left -= e.n
		wait = e.at.Add(span).Sub(now)
	}
	return wait
}

// expire drops what counts no longer.
func (w *window) expire(now time.Time) {
	old := 0
	for old < len(w.entries) && now.Sub(w.entries[old].at) >= span {
		w.sum -= w.entries[old].n
		w.entries[old].gone = true
		w.entries[old] = nil
		old++
	}
	w.entries = w.entries[old:]
}
