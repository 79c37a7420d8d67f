package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// orDefault has numbers where there were none.
func (o Observation) orDefault() Observation {
	if o.MaxChars == 0 && o.HeadChars == 0 && o.TailChars == 0 {
		o.MaxChars, o.HeadChars, o.TailChars = DefaultObservation.MaxChars, DefaultObservation.HeadChars, DefaultObservation.TailChars
	}
	return o
}

// lookAtTail bounds an output to its last lines. The head is a note on what was
// left out, so that a template which shows head and tail says it.
func (o Observation) lookAtTail(r env.Result) view {
	tail := r.Output
	if r.Truncated {
		tail = r.Output[r.Head:]
	}
	from := lastLines(tail, cmp.Or(o.MaxLines, DefaultMaxLines), cmp.Or(o.MaxBytes, DefaultMaxBytes))
	if from == 0 && !r.Truncated {
		return view{text: valid(r.Output)}
	}
	v := view{isElided: true, tail: valid(tail[from:]), elided: r.Chars - int64(utf8.RuneCount(tail[from:]))}
	what := ""
	if whole := from == 0 || tail[from-1] == '\n'; !r.Truncated && whole {
		what = fmt.Sprintf("%d of its lines, ", bytes.Count(tail[:from], []byte("\n")))
	}
	v.head = fmt.Sprintf("[... the beginning is left out: %s%d characters; the end follows ...]", what, v.elided)
	v.text = v.head + "\n" + v.tail
	return v
}

// lastLines is where the last lines of b begin: so many of them, whole, as there
// may be, or the last bytes of a line that is too long. It is 0 where all of b may
// stay.
func lastLines(b []byte, lines, size int) int {
	from := len(b)
	for range lines {
		if from == 0 {
			break
		}
		line := bytes.LastIndexByte(b[:from-1], '\n') + 1
		if len(b)-line > size {
			break
		}
		from = line
	}
	if from < len(b) || len(b) == 0 {
		return from
	}
	return wholeRune(b, len(b)-size)
}

// wholeRune is i, or where the character ends that i is in the middle of.
func wholeRune(b []byte, i int) int {
	for k := 1; k < utf8.UTFMax && k <= i; k++ {
		if _, size := utf8.DecodeRune(b[i-k:]); size > k {
			return i - k + size
		}
	}
	return i
}
