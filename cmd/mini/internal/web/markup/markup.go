// Package markup makes HTML of untrusted text: replies, commands, outputs, patches, names.
//
//	markup.Text(command, markup.Options{})   // escaped; control characters become visible
//	markup.Output(output, markup.Options{})  // with the colours of the terminal
//	markup.Diff(patch, markup.Options{})     // lines by class
//	markup.Prose(reply, markup.Options{})    // code between backquotes marked
//	markup.Line(name)                        // one line, for names and errors
//
// The package escapes everything that it is given and adds only these tags, none of which loads
// or runs anything: <span class="..."> with a title, <mark>, <code> and <pre>. The HTML is meant
// for elements with "white-space: pre-wrap" or "pre". The text that a browser shows is the input,
// except that:
//
//   - a character that a reader cannot see, such as a control character, an override of the
//     writing direction, a space without width or a byte that is not UTF-8, is shown as a sign in
//     <span class="ctl">, with its code as title. Of a run of them only the first ones are shown.
//   - the end of a line over MaxLine and the middle of a block over its limit are left out, with
//     a note in <span class="cut"> and <span class="gap">. The latter includes its line ends.
//
// All functions take linear time, and their result is at most about MaxGrowth times as long as
// the limit.
package markup

import (
	"html/template"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/internal/sanitize"
)

const (
	// DefaultLimit is the number of bytes of a text that are shown.
	DefaultLimit = 256 << 10
	// MaxLine is the number of bytes of a line that are shown.
	MaxLine = 16 << 10
	// MaxGrowth bounds the length of the result, as a multiple of the limit, for limits from
	// DefaultLimit on.
	MaxGrowth = 8
	// maxSpans is the number of colours, signs and lines of a block that get a tag. Further ones
	// are plain text.
	maxSpans = 4000
	// maxHits is the number of hits of a block that are marked.
	maxHits = 4000
)

// Options change how a text is rendered. The zero value shows the first and last part of up to
// DefaultLimit bytes, without hits.
type Options struct {
	Limit int    // of the bytes to show; 0 means DefaultLimit
	Query string // its hits are marked, by the rule of query.TextMatcher
}

func (o Options) limit() int {
	if o.Limit <= 0 {
		return DefaultLimit
	}
	return o.Limit
}

// Text renders a text without colours. CRLF becomes LF.
func Text(s string, o Options) Block {
	w := newWriter(o)
	w.parts(s, o.limit(), func(part string) {
		for line := range strings.Lines(part) {
			line, end := cutEnd(line)
			w.line(line, nil, "", end)
		}
	})
	return w.block()
}

// Output renders the output of a command as a terminal would leave it on the screen (see
// sanitize.Output). It keeps the colours as classes; the colours of larger palettes are rounded
// to 16.
func Output(s string, o Options) Block {
	w := newWriter(o)
	w.parts(s, o.limit(), func(part string) {
		text := sanitize.Output(part)
		for len(text) > 0 {
			// A few bytes that move the cursor become a line of spaces.
			if w.shown > 2*o.limit() {
				w.gap(len(text))
				return
			}
			i := strings.IndexByte(text, '\n') + 1
			if i == 0 {
				i = len(text)
			}
			line, end := cutEnd(text[:i])
			plain, styles := readColours(line)
			w.line(plain, styles, "", end)
			text = text[i:]
		}
	})
	return w.block()
}

// Line renders a text in one line: line ends become visible, and there is no element that is
// not inline.
func Line(s string) template.HTML {
	w := newWriter(Options{})
	w.line(s, nil, "", "")
	return w.block().HTML()
}

// cutEnd removes the line end, which is LF or CRLF.
func cutEnd(line string) (text, end string) {
	text, isComplete := strings.CutSuffix(line, "\n")
	if !isComplete {
		return line, ""
	}
	return strings.TrimSuffix(text, "\r"), "\n"
}

// parts calls render for the text, or for its first and last part if it is longer than the
// limit, with a note between them.
func (w *writer) parts(s string, limit int, render func(string)) {
	if len(s) <= limit {
		render(s)
		return
	}
	half := limit / 2
	head := runeStart(s, half)
	if i := strings.LastIndexByte(s[:head], '\n'); i >= half/2 {
		head = i + 1
	}
	tail := runeStart(s, len(s)-half)
	if i := strings.IndexByte(s[tail:], '\n'); i >= 0 && i < half/2 {
		tail += i + 1
	}
	render(s[:head])
	w.gap(tail - head)
	render(s[tail:])
}

// runeStart returns the index of the character that the byte at i belongs to.
func runeStart(s string, i int) int {
	for back := 0; i < len(s) && back < utf8.UTFMax && i-back > 0; back++ {
		if utf8.RuneStart(s[i-back]) {
			return i - back
		}
	}
	return i
}
