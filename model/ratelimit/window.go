package ratelimit

import "time"

// windowLength is a minute, plus a second because requests do not arrive as
// evenly as they are sent. A token bucket would not do: it allows twice its size in
// the first minute, and providers count by the minute.
const windowLength = 61 * time.Second

// window limits an amount, of requests or tokens, in any minute.
type window struct {
	limit   int64 // 0: unlimited
	entries []*entry
	sum     int64
}

type entry struct {
	at      time.Time
	n       int64
	expired bool // no longer in the window's sum
}

// add counts n, whether or not there is room.
func (w *window) add(now time.Time, n int64) *entry {
	w.expire(now)
	e := &entry{at: now, n: n}
	w.entries = append(w.entries, e)
	w.sum += n
	return e
}

// correct sets the actual amount of an entry, unless the entry has expired.
func (w *window) correct(e *entry, n int64) {
	if !e.expired {
		w.sum += n - e.n
		e.n = n
	}
}

// wait returns how long until there is room for n. An n above the limit has room
// when the window is empty.
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
		wait = e.at.Add(windowLength).Sub(now)
	}
	return wait
}

// expire removes entries that are older than the window.
func (w *window) expire(now time.Time) {
	n := 0
	for n < len(w.entries) && now.Sub(w.entries[n].at) >= windowLength {
		w.sum -= w.entries[n].n
		w.entries[n].expired = true
		w.entries[n] = nil
		n++
	}
	w.entries = w.entries[n:]
}
