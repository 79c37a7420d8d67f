package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	tty "github.com/minibench/mini/cmd/mini/internal/screen"
)

// measure is the longest line of prose, in columns: longer ones are hard to
// read. Commands and outputs are as wide as the terminal.
const measure = 100

// words wraps prose at spaces. A row never has more than w columns.
func words(text string, w int) []string {
	w = max(1, min(w, measure))
	var rows []string
	for line := range strings.SplitSeq(text, "\n") {
		rows = append(rows, strings.Split(ansi.WrapWc(line, w, ""), "\n")...)
	}
	return rows
}

// wrapped is a row of the screen's own in rows of w columns, wrapped at spaces. No
// row leaves its colours to the next, which repeats them.
func wrapped(row string, w int) []string {
	if tty.Width(row) <= w {
		return []string{row}
	}
	style := "" // each sequence of the screen's own says all
	rows := strings.Split(ansi.WrapWc(row, max(1, w), ""), "\n")
	for i, row := range rows {
		if i > 0 { // without what went onto the space before it
			row = strings.TrimLeftFunc(row, func(r rune) bool { return r != ansi.ESC && tty.Width(string(r)) == 0 })
		}
		rows[i] = style + row
		if at := strings.LastIndex(row, "\x1b"); at >= 0 {
			style = row[at : at+strings.IndexByte(row[at:], 'm')+1]
		}
		if style == ansi.ResetStyle {
			style = ""
		}
		if style != "" {
			rows[i] += ansi.ResetStyle
		}
	}
	return rows
}

// pieces is a line of plain text in rows of w columns, broken before spaces where
// that is possible. Put together they are the line.
func pieces(line string, w int) []string {
	var rows []string
	for {
		n := breakAt(line, max(1, w))
		rows = append(rows, line[:n])
		if line = line[n:]; line == "" {
			return rows
		}
	}
}

// breakAt is how many bytes of a line the first row of w columns has. It ends before
// a space, unless the word after that has no room in a row of its own.
func breakAt(line string, w int) int {
	n, _ := columnsOf(line, w)
	if n == len(line) {
		return n
	}
	at := strings.LastIndexByte(line[:n+1], ' ')
	at = len(strings.TrimRight(line[:max(0, at)], " "))
	word := strings.TrimLeft(line[at:], " ")
	fit, more := columnsOf(word, w-1)
	if at == 0 || more && !strings.Contains(word[:fit], " ") && word[fit] != ' ' {
		return n
	}
	return at
}

// columnsOf is how many bytes of a line have room in w columns, at least those of one
// character; more says that there are others.
func columnsOf(line string, w int) (n int, more bool) {
	for n < len(line) {
		_, wide, size, _ := ansi.DecodeSequenceWc(line[n:], 0, nil)
		if w -= wide; w < 0 && n > 0 {
			return n, true
		}
		n += size
	}
	return n, false
}

// goesOn stands before a row that goes on with the line of the row above it, in
// one column. What is behind it is what comes next: a space, or the rest of a word.
const goesOn = "↳"

// indented puts something before the first row, and as many spaces before the
// others.
func indented(first string, rows []string) []string {
	blank := strings.Repeat(" ", tty.Width(first))
	for i, row := range rows {
		if i == 0 {
			rows[i] = first + row
		} else if row != "" {
			rows[i] = blank + row
		}
	}
	return rows
}

func each(rows []string, style func(string) string) []string {
	for i, row := range rows {
		rows[i] = style(row)
	}
	return rows
}
