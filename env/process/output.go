package process

import (
	"io"

	"github.com/minibench/mini/env"
)

// Output bounds what a command writes. The first half of the limit goes to the
// sink as it arrives; of the rest the last half is kept and follows at the
// end. An output that fits the limit is therefore passed whole. No more than
// env.MaxTail is kept: of a larger limit more goes to the sink at once.
//
// An output that begins with a marker goes to the sink entirely, up to
// env.SubmissionLimit; what lies beyond that is dropped, so that no more than
// an ordinary tail is ever held here.
type Output struct {
	sink  io.Writer
	err   error // the first error of sink; after it nothing more is written to it
	head  int64 // how many bytes may go to the sink as they arrive
	sent  int64 // how many did
	bytes int64
	chars charCounter
	first *firstLine // nil once it is known what the output is
	tail  tail
}

// NewOutput returns one that keeps limit bytes, or what Command.OutputLimit says of
// zero.
func NewOutput(sink io.Writer, limit int, markers []string) *Output {
	switch {
	case limit == 0:
		limit = env.DefaultOutputLimit
	case limit < env.MinOutputLimit:
		limit = env.MinOutputLimit
	}
	end := min(limit-limit/2, env.MaxTail)
	return &Output{sink: sink, head: int64(limit - end), first: newFirstLine(markers), tail: tail{max: end}}
}

// Write implements io.Writer; it never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.add(p)
	return len(p), nil
}

// add takes the next bytes of the stream; it does not keep p.
func (o *Output) add(p []byte) {
	o.bytes += int64(len(p))
	o.chars.add(p)
	p = o.stream(p)
	if len(p) > 0 && o.first == nil {
		p = o.stream(p) // the limit may just have been lifted
	}
	o.tail.add(p)
}

// stream passes on what the head still has room for and returns the rest.
func (o *Output) stream(p []byte) []byte {
	now := p[:min(int64(len(p)), o.head-o.sent)]
	if len(now) == 0 {
		return p
	}
	o.sent += int64(len(now))
	o.write(now)
	if o.first == nil {
		return p[len(now):]
	}
	switch o.first.add(now) {
	case marked:
		o.first = nil
		o.head = max(o.head, env.SubmissionLimit)
		o.tail.max = 0
	case plain:
		o.first = nil
	case undecided:
		if o.sent == o.head { // an endless blank beginning is no submission
			o.first = nil
		}
	}
	return p[len(now):]
}

func (o *Output) write(p []byte) {
	if o.err == nil && len(p) > 0 {
		_, o.err = o.sink.Write(p)
	}
}

// Finish passes on the tail and reports the counts.
func (o *Output) Finish(r *env.Result) {
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

// tail keeps the last max bytes of a stream. Memory grows with what arrives.
type tail struct {
	max  int
	ring []byte
	next int // where the oldest byte is once the ring is full
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

// parts returns the kept bytes, older ones first.
func (t *tail) parts() (older, newer []byte) { return t.ring[t.next:], t.ring[:t.next] }
