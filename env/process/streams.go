package process

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/env"
)

// maxHeld bounds the output that Output holds back, in bytes.
const maxHeld = 1 << 20

// Output takes the output of a command and limits it (see OutputLimiter). The streams of
// most scripts arrive through one pipe, which keeps their order. Those of a script that
// contains a marker, and so may submit, arrive separately, because a shell, a loader or a
// program may print warnings on standard error before the marker. If the first line of
// standard output is a marker and the command succeeds, the output is standard output
// alone; else it is both, in the order in which they arrive. Until that is decided, output
// is held back.
type Output struct {
	limiter  *OutputLimiter
	separate bool

	mu      sync.Mutex
	matcher *markerMatcher // nil once decided
	submits bool           // the first line is a marker
	held    []heldPart     // before the decision: both streams; after a marker: standard error
	size    int            // bytes held
	lost    int64          // bytes of standard error after a marker that were too many to hold
}

type heldPart struct {
	isError bool
	data    []byte
}

// NewOutput returns the output of a script. It writes what is kept to sink, and keeps at
// most limit bytes (see NewOutputLimiter).
func NewOutput(sink io.Writer, script string, limit int, markers []string) *Output {
	o := &Output{limiter: NewOutputLimiter(sink, limit, markers)}
	o.separate = slices.ContainsFunc(markers, func(m string) bool { return m != "" && strings.Contains(script, m) })
	if o.separate {
		o.matcher = newMarkerMatcher(markers)
	}
	return o
}

// Writers returns a writer for both streams, or one for standard output and one for
// standard error. They may be used concurrently and never return an error.
func (o *Output) Writers() []io.Writer {
	if !o.separate {
		return []io.Writer{o.limiter}
	}
	return []io.Writer{stream{o, false}, stream{o, true}}
}

type stream struct {
	output  *Output
	isError bool
}

func (s stream) Write(p []byte) (int, error) {
	s.output.add(s.isError, p)
	return len(p), nil
}

func (o *Output) add(isError bool, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.matcher == nil && (!o.submits || !isError) {
		o.limiter.add(p)
		return
	}
	if o.submits && o.size+len(p) > maxHeld {
		o.lost += int64(len(p))
		return
	}
	o.held = append(o.held, heldPart{isError, bytes.Clone(p)})
	o.size += len(p)
	state := matchUnknown
	if !isError {
		state = o.matcher.add(p)
	}
	if state != matchUnknown || o.size > maxHeld {
		o.decide(state == matchFound)
	}
}

// decide ends the wait for the first line. If it is a marker, standard error stays held
// back.
func (o *Output) decide(submits bool) {
	o.matcher, o.submits, o.size = nil, submits, 0
	var kept []heldPart
	for _, part := range o.held {
		if submits && part.isError {
			kept = append(kept, part)
			o.size += len(part.data)
		} else {
			o.limiter.add(part.data)
		}
	}
	o.held = kept
}

// Finish ends the output and sets the fields of r that OutputLimiter.Finish sets. success
// reports that the command ended by itself with exit code 0.
func (o *Output) Finish(success bool, r *env.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	submits := o.submits || o.matcher != nil && o.matcher.isMarker()
	submits = submits && success
	o.decide(submits)
	o.limiter.Finish(r)
	if o.lost > 0 && !submits {
		r.Bytes += o.lost
		r.Truncated = true
	}
}
