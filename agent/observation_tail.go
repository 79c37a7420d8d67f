package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// orDefault fills in the default character limits if none is set.
func (o Observation) orDefault() Observation {
	if o.MaxChars == 0 && o.HeadChars == 0 && o.TailChars == 0 {
		o.MaxChars, o.HeadChars, o.TailChars = DefaultObservation.MaxChars, DefaultObservation.HeadChars, DefaultObservation.TailChars
	}
	return o
}

// shortenToTail bounds an output to its last lines. head is a note on what is
// left out, so that a template that shows head and tail includes it.
func (o Observation) shortenToTail(r env.Result) shownOutput {
	tail := r.Output
	if r.Truncated {
		tail = r.Output[r.Head:]
	}
	from := lastLines(tail, cmp.Or(o.MaxLines, DefaultMaxLines), cmp.Or(o.MaxBytes, DefaultMaxBytes))
	if from == 0 && !r.Truncated {
		return shownOutput{text: toValidUTF8(r.Output)}
	}
	v := shownOutput{isElided: true, tail: toValidUTF8(tail[from:]), elidedChars: r.Chars - int64(utf8.RuneCount(tail[from:]))}
	what := ""
	if whole := from == 0 || tail[from-1] == '\n'; !r.Truncated && whole {
		what = fmt.Sprintf("%d of its lines, ", bytes.Count(tail[:from], []byte("\n")))
	}
	v.head = fmt.Sprintf("[... the beginning is left out: %s%d characters; the end follows ...]", what, v.elidedChars)
	v.text = v.head + "\n" + v.tail
	return v
}

// lastLines returns the offset of the last lines of b: at most the given number
// of lines, within size bytes. If the last line alone is longer, it returns the
// offset of its last size bytes.
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

// wholeRune returns i, or the end of the character that i is inside of.
func wholeRune(b []byte, i int) int {
	for k := 1; k < utf8.UTFMax && k <= i; k++ {
		if _, size := utf8.DecodeRune(b[i-k:]); size > k {
			return i - k + size
		}
	}
	return i
}
