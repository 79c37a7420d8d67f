package markup

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// writer collects the lines of a block.
type writer struct {
	out     strings.Builder
	lines   []line
	find    finder
	spans   int // number of tags that may still be written
	hits    int
	shown   int // bytes of the text
	omitted int
	tag     string  // the tag that is open
	hit     int     // number of the hit that is open, within the tag; 0 for none
	run     signRun // signs that are not written yet
	filter  charFilter
}

// style is the tag of the text from an offset on.
type style struct {
	at  int
	tag string // "" for none
}

func newWriter(o Options) *writer { return &writer{find: newFinder(o.Query), spans: maxSpans} }

func (w *writer) block() Block {
	return Block{html: w.out.String(), lines: w.lines, omitted: w.omitted, hits: w.hits}
}

// line writes a line with its styles, which are sorted by their offsets, and its line end.
func (w *writer) line(s string, styles []style, wrap, end string) {
	rest := 0
	if len(s) > MaxLine {
		rest = len(s) - runeStart(s, MaxLine)
		s = s[:len(s)-rest]
	}
	w.shown += len(s)
	hits := w.find.all(s, maxHits-w.hits)
	w.hits += len(hits)
	w.filter = charFilter{}
	for i := 0; i < len(s); {
		next := len(s)
		tag, hit := w.tag, 0
		for len(styles) > 0 && styles[0].at <= i {
			tag, styles = styles[0].tag, styles[1:]
		}
		if len(styles) > 0 {
			next = min(next, styles[0].at)
		}
		for len(hits) > 0 && hits[0].end <= i {
			hits = hits[1:]
		}
		if len(hits) > 0 {
			if hits[0].start <= i {
				hit, next = w.hits-len(hits)+1, min(next, hits[0].end)
			} else {
				next = min(next, hits[0].start)
			}
		}
		w.change(tag, hit)
		w.put(s[i:next])
		i = next
	}
	w.change("", 0)
	if rest > 0 {
		w.omitted += rest
		fmt.Fprintf(&w.out, `<span class="cut">(%d more bytes)</span>`, rest)
	}
	w.finish(wrap, end)
}

// gap writes a line that says how many bytes are left out.
func (w *writer) gap(n int) {
	w.omitted += n
	w.out.WriteString(`<span class="gap">`)
	if last := len(w.lines) - 1; last >= 0 && !w.lines[last].isComplete {
		w.out.WriteByte('\n')
	}
	fmt.Fprintf(&w.out, "(%d more bytes)\n</span>", n)
	w.finish("", "")
}

// finish ends a line.
func (w *writer) finish(wrap, end string) {
	w.out.WriteString(end)
	before := ""
	if len(w.lines) > 0 {
		before = w.lines[len(w.lines)-1].wrap
	}
	if wrap != "" && wrap != before && !w.allowSpan() {
		wrap = ""
	}
	w.lines = append(w.lines, line{end: w.out.Len(), wrap: wrap, isComplete: end != ""})
}

func (w *writer) allowSpan() bool {
	w.spans = max(w.spans-1, -1)
	return w.spans >= 0
}

// change closes and opens tags for the text that follows.
func (w *writer) change(tag string, hit int) {
	if tag == w.tag && hit == w.hit {
		return
	}
	w.flush()
	if w.hit > 0 {
		w.out.WriteString("</mark>")
	}
	w.out.WriteString(closing(w.tag))
	if w.tag = tag; tag != "" && !w.allowSpan() {
		w.tag = ""
	}
	w.out.WriteString(w.tag)
	if w.hit = hit; hit > 0 {
		w.out.WriteString("<mark>")
	}
}

// put writes a text, escaped and with signs for what cannot be seen.
func (w *writer) put(s string) {
	for i := 0; i < len(s); {
		if n := plainPrefix(s[i:]); n > 0 {
			w.flush()
			w.filter = charFilter{last: rune(s[i+n-1])}
			w.out.WriteString(s[i : i+n])
			i += n
			continue
		}
		c := s[i]
		if c < utf8.RuneSelf && escapes[c] != "" {
			w.flush()
			w.filter = charFilter{last: rune(c)}
			w.out.WriteString(escapes[c])
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			w.filter = charFilter{}
			w.sign(utf8.RuneError, fmt.Sprintf("0x%02X", c))
		case w.filter.isVisible(r, s[i+size:]):
			w.flush()
			w.out.WriteString(s[i : i+size])
		default:
			w.sign(signOf(r), fmt.Sprintf("U+%04X", r))
		}
		i += size
	}
	w.flush()
}

// plainPrefix returns the length of the text before the first character that needs attention.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < ' ' || c >= 0x7f || escapes[c] != "") {
			return i
		}
	}
	return len(s)
}

var escapes = [utf8.RuneSelf]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;"}

// maxSigns is the number of signs of a run that are shown.
const maxSigns = 8

// signRun is a run of characters that are shown as signs.
type signRun struct {
	signs, codes strings.Builder
	count        int
}

func (w *writer) sign(sign rune, code string) {
	if w.run.count++; w.run.count > maxSigns {
		return
	}
	w.run.signs.WriteRune(sign)
	if w.run.count > 1 {
		w.run.codes.WriteByte(' ')
	}
	w.run.codes.WriteString(code)
}

// flush writes the run of signs.
func (w *writer) flush() {
	if w.run.count == 0 {
		return
	}
	isMarked := w.allowSpan()
	if isMarked {
		fmt.Fprintf(&w.out, `<span class="ctl" title="%s">`, w.run.codes.String())
	}
	w.out.WriteString(w.run.signs.String())
	if more := w.run.count - maxSigns; more > 0 {
		fmt.Fprintf(&w.out, "(%d more)", more)
	}
	if isMarked {
		w.out.WriteString("</span>")
	}
	w.run = signRun{}
}
