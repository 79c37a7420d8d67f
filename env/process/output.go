package process

import (
	"io"

	"github.com/minibench/mini/env"
)

// OutputLimiter limits the output of a command. It writes output to the sink as it
// arrives, up to half of the limit. Of the rest, it keeps the end, up to the other
// half, and writes that when the command has ended. An output within the limit is
// therefore passed completely. The kept tail is at most env.MaxTail; a larger limit
// extends the head instead.
//
// An output whose first line is a marker is written completely, up to
// env.SubmissionLimit, or up to the size of the head if that is larger. No tail is kept
// then.
type OutputLimiter struct {
	sink    io.Writer
	err     error // the first error of sink; no Write follows it
	head    int64 // maximum number of bytes to write as they arrive
	sent    int64 // number of bytes written as they arrived
	bytes   int64
	chars   charCounter
	matcher *markerMatcher // nil once decided
	tail    tail
}

// NewOutputLimiter returns an OutputLimiter that keeps at most limit bytes (see
// Command.OutputLimit for zero and small values).
func NewOutputLimiter(sink io.Writer, limit int, markers []string) *OutputLimiter {
	switch {
	case limit == 0:
		limit = env.DefaultOutputLimit
	case limit < env.MinOutputLimit:
		limit = env.MinOutputLimit
	}
	tailSize := min(limit-limit/2, env.MaxTail)
	return &OutputLimiter{sink: sink, head: int64(limit - tailSize), matcher: newMarkerMatcher(markers), tail: tail{max: tailSize}}
}

// Write implements io.Writer; it never returns an error.
func (o *OutputLimiter) Write(p []byte) (int, error) {
	o.add(p)
	return len(p), nil
}

// add processes the next bytes of the stream. It does not retain p.
func (o *OutputLimiter) add(p []byte) {
	o.bytes += int64(len(p))
	o.chars.add(p)
	p = o.writeHead(p)
	if len(p) > 0 && o.matcher == nil {
		p = o.writeHead(p) // a marker may have raised the limit
	}
	o.tail.add(p)
}

// writeHead writes the part of p that fits into the head and returns the rest.
func (o *OutputLimiter) writeHead(p []byte) []byte {
	fits := p[:min(int64(len(p)), o.head-o.sent)]
	if len(fits) == 0 {
		return p
	}
	o.sent += int64(len(fits))
	o.write(fits)
	if o.matcher == nil {
		return p[len(fits):]
	}
	switch o.matcher.add(fits) {
	case matchFound:
		o.matcher = nil
		o.head = max(o.head, env.SubmissionLimit)
		o.tail.max = 0
	case matchFailed:
		o.matcher = nil
	case matchUnknown:
		if o.sent == o.head { // the head is full of white space: no submission
			o.matcher = nil
		}
	}
	return p[len(fits):]
}

func (o *OutputLimiter) write(p []byte) {
	if o.err == nil && len(p) > 0 {
		_, o.err = o.sink.Write(p)
	}
}

// Finish writes the tail and sets Bytes, Chars, Truncated and Head of r.
func (o *OutputLimiter) Finish(r *env.Result) {
	older, newer := o.tail.parts()
	o.write(older)
	o.write(newer)
	kept := o.sent + int64(len(older)+len(newer))
	r.Bytes = o.bytes
	r.Chars = o.chars.total()
	r.Truncated = kept < o.bytes
	r.Head = int(kept)
	if r.Truncated {
		r.Head = int(o.sent)
	}
}

// tail keeps the last max bytes of a stream. Its memory grows with the input, up to max
// bytes.
type tail struct {
	max  int
	ring []byte
	next int // index of the oldest byte once the ring is full
}

func (t *tail) add(p []byte) {
	if len(p) > t.max {
		p = p[len(p)-t.max:]
	}
	if room := t.max - len(t.ring); room > 0 {
		n := min(room, len(p))
		t.ring = append(t.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(t.ring[t.next:], p)
		t.next = (t.next + n) % t.max
		p = p[n:]
	}
}

// parts returns the kept bytes in two slices, older ones first.
func (t *tail) parts() (older, newer []byte) { return t.ring[t.next:], t.ring[:t.next] }
