package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// orDefault fills in the default character limits if none is set.
func (o ObservationConfig) orDefault() ObservationConfig {
	if o.MaxChars == 0 && o.HeadChars == 0 && o.TailChars == 0 {
		o.MaxChars, o.HeadChars, o.TailChars = DefaultObservation.MaxChars, DefaultObservation.HeadChars, DefaultObservation.TailChars
	}
	return o
}

// shortenToTail bounds an output to its last lines. It puts the note on what is
// left out into head, so that a template that shows head and tail includes the
// note.
func (o ObservationConfig) shortenToTail(r env.Result) shownOutput {
	tail := r.Output
	if r.Truncated {
		tail = r.Output[r.Head:]
	}
	start := lastLines(tail, cmp.Or(o.MaxLines, DefaultMaxLines), cmp.Or(o.MaxBytes, DefaultMaxBytes))
	if start == 0 && !r.Truncated {
		return shownOutput{text: toValidUTF8(r.Output)}
	}
	v := shownOutput{isElided: true, tail: toValidUTF8(tail[start:]), elidedChars: r.Chars - int64(utf8.RuneCount(tail[start:]))}
	lineCount := ""
	if whole := start == 0 || tail[start-1] == '\n'; !r.Truncated && whole {
		lineCount = fmt.Sprintf("%d of its lines, ", bytes.Count(tail[:start], []byte("\n")))
	}
	v.head = fmt.Sprintf("[... the beginning is left out: %s%d characters; the end follows ...]", lineCount, v.elidedChars)
	v.text = v.head + "\n" + v.tail
	return v
}

// lastLines returns the offset of the last lines of b: at most the given number
// of lines, within size bytes. If the last line alone is longer, it returns the
// offset of its last size bytes.
func lastLines(b []byte, lines, size int) int {
	start := len(b)
	for range lines {
		if start == 0 {
			break
		}
		lineStart := bytes.LastIndexByte(b[:start-1], '\n') + 1
		if len(b)-lineStart > size {
			break
		}
		start = lineStart
	}
	if start < len(b) || len(b) == 0 {
		return start
	}
	return wholeRune(b, len(b)-size)
}

// wholeRune returns i if a character starts there, else the end of the
// character around it.
func wholeRune(b []byte, i int) int {
	for k := 1; k < utf8.UTFMax && k <= i; k++ {
		if _, size := utf8.DecodeRune(b[i-k:]); size > k {
			return i - k + size
		}
	}
	return i
}
