package sanitize

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// lineBuffer is the terminal line with the cursor, as cells by column. Text after a carriage
// return or backspace overwrites earlier text.
type lineBuffer struct {
	cells  []cell
	cursor int
	style  style
	filter charFilter
}

type cell struct {
	char  rune // 0 in the second column of a wide character
	marks [maxMarks]rune
	style style
}

const (
	// maxLineWidth bounds a line, in columns; longer lines are split (see isFull).
	maxLineWidth = 1 << 16
	// maxGap is the column up to which the cursor may move right of the line's end.
	maxGap = 256
)

var blank = cell{char: ' '}

// isFull reports whether the line must be split before the next character.
func (w *lineBuffer) isFull() bool { return w.cursor >= maxLineWidth-2 }

// put writes a character at the cursor.
func (w *lineBuffer) put(r rune) {
	r, ok := w.filter.apply(r)
	if !ok {
		return
	}
	if r >= 0x300 && isCombining(r) {
		w.addMark(r)
		return
	}
	wide := width(r)
	for len(w.cells) < w.cursor+wide {
		w.cells = append(w.cells, blank)
	}
	end := w.cursor + wide
	w.clearSplitWide(w.cursor)
	w.clearSplitWide(end)
	w.cells[w.cursor] = cell{char: r, style: w.style}
	for i := w.cursor + 1; i < end; i++ {
		w.cells[i] = cell{style: w.style}
	}
	w.cursor = end
}

// clearSplitWide replaces the wide character whose second half is in the given column, if
// there is one, by spaces.
func (w *lineBuffer) clearSplitWide(column int) {
	if column == 0 || column >= len(w.cells) || w.cells[column].char != 0 {
		return
	}
	w.cells[column-1], w.cells[column] = blank, blank
}

// addMark adds a combining mark to the character before the cursor.
func (w *lineBuffer) addMark(r rune) {
	column := w.cursor - 1
	if column > 0 && w.cells[column].char == 0 {
		column--
	}
	if column < 0 {
		return
	}
	for i, m := range w.cells[column].marks {
		if m == 0 {
			w.cells[column].marks[i] = r
			return
		}
	}
}

// move moves the cursor to a column.
func (w *lineBuffer) move(to int) {
	w.cursor = max(0, min(to, max(len(w.cells), maxGap)))
	w.filter = newCharFilter()
}

// tab moves to the next tab stop.
func (w *lineBuffer) tab() {
	to := w.cursor - w.cursor%tabWidth + tabWidth
	for len(w.cells) < to {
		w.cells = append(w.cells, cell{char: ' ', style: w.style})
	}
	w.move(to)
}

// erase erases from the cursor to the end (0), from the start through the cursor (1), or the whole
// line (2).
func (w *lineBuffer) erase(mode int) {
	switch mode {
	case 0:
		if w.cursor < len(w.cells) {
			w.clearSplitWide(w.cursor)
			w.cells = w.cells[:w.cursor]
		}
	case 1:
		end := min(w.cursor+1, len(w.cells))
		w.clearSplitWide(end)
		for i := range end {
			w.cells[i] = blank
		}
	case 2:
		w.cells = w.cells[:0]
	}
}

// reset clears the line; the style stays.
func (w *lineBuffer) reset() {
	w.cells, w.cursor, w.filter = w.cells[:0], 0, newCharFilter()
}

// String returns the line with its styles, which it resets at the end.
func (w *lineBuffer) String() string {
	var b strings.Builder
	b.Grow(len(w.cells))
	var current style
	for _, c := range w.cells {
		if c.char == 0 {
			continue
		}
		if !c.style.Equal(&current) {
			b.WriteString(styleSequence(&c.style, &current))
			current = c.style
		}
		b.WriteRune(c.char)
		for _, m := range c.marks {
			if m != 0 {
				b.WriteRune(m)
			}
		}
	}
	if !current.IsZero() {
		b.WriteString(ansi.ResetStyle)
	}
	return b.String()
}
