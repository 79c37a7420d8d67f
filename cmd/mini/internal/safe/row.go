package safe

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// row is the line that the cursor is in, column by column: what comes after a
// carriage return, or a backspace, goes over what was there.
type row struct {
	cells  []cell
	cursor int
	pen    style
	signs  signs
}

type cell struct {
	sign  rune // 0 in the second column of a wide sign
	marks [maxMarks]rune
	style style
}

const (
	// maxRow is the longest line that is kept as one, in columns.
	maxRow = 1 << 16
	// maxGap is how far to the right of a line's end the cursor may go.
	maxGap = 256
)

var blank = cell{sign: ' '}

// full says that the line must end before another sign comes.
func (w *row) full() bool { return w.cursor >= maxRow-2 }

// put shows a character where the cursor is.
func (w *row) put(r rune) {
	r, ok := w.signs.next(r)
	if !ok {
		return
	}
	if r >= 0x300 && joins(r) {
		w.mark(r)
		return
	}
	wide := width(r)
	for len(w.cells) < w.cursor+wide {
		w.cells = append(w.cells, blank)
	}
	end := w.cursor + wide
	w.split(w.cursor)
	w.split(end)
	w.cells[w.cursor] = cell{sign: r, style: w.pen}
	for i := w.cursor + 1; i < end; i++ {
		w.cells[i] = cell{style: w.pen}
	}
	w.cursor = end
}

// split leaves spaces of a wide sign that would be cut before a column.
func (w *row) split(at int) {
	if at == 0 || at >= len(w.cells) || w.cells[at].sign != 0 {
		return
	}
	w.cells[at-1], w.cells[at] = blank, blank
}

// mark puts a mark on the sign before the cursor.
func (w *row) mark(r rune) {
	at := w.cursor - 1
	if at > 0 && w.cells[at].sign == 0 {
		at--
	}
	if at < 0 {
		return
	}
	for i, m := range w.cells[at].marks {
		if m == 0 {
			w.cells[at].marks[i] = r
			return
		}
	}
}

// move sets the cursor to a column.
func (w *row) move(to int) {
	w.cursor = max(0, min(to, max(len(w.cells), maxGap)))
	w.signs = newSigns()
}

// tab goes to the next tab stop, over what is there, if anything is.
func (w *row) tab() {
	to := w.cursor - w.cursor%tab + tab
	for len(w.cells) < to {
		w.cells = append(w.cells, cell{sign: ' ', style: w.pen})
	}
	w.move(to)
}

// erase empties the line: from the cursor (0), up to it (1), or all of it (2).
func (w *row) erase(what int) {
	switch what {
	case 0:
		if w.cursor < len(w.cells) {
			w.split(w.cursor)
			w.cells = w.cells[:w.cursor]
		}
	case 1:
		end := min(w.cursor+1, len(w.cells))
		w.split(end)
		for i := range end {
			w.cells[i] = blank
		}
	case 2:
		w.cells = w.cells[:0]
	}
}

// end empties the row for the next line; the pen stays.
func (w *row) end() {
	w.cells, w.cursor, w.signs = w.cells[:0], 0, newSigns()
}

// String is the line as it stands, and nothing of its style goes beyond it.
func (w *row) String() string {
	var b strings.Builder
	b.Grow(len(w.cells))
	var now style
	for _, c := range w.cells {
		if c.sign == 0 {
			continue
		}
		if !c.style.Equal(&now) {
			b.WriteString(sequence(&c.style, &now))
			now = c.style
		}
		b.WriteRune(c.sign)
		for _, m := range c.marks {
			if m != 0 {
				b.WriteRune(m)
			}
		}
	}
	if !now.IsZero() {
		b.WriteString(ansi.ResetStyle)
	}
	return b.String()
}
