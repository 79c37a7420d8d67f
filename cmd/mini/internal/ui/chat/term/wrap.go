package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// maxProseWidth is the longest line of prose, in columns; longer lines are hard to read.
// Commands and outputs use the full width.
const maxProseWidth = 100

// wrapWords wraps prose at spaces into rows of at most w columns, and at most maxProseWidth.
func wrapWords(text string, w int) []string {
	w = max(1, min(w, maxProseWidth))
	var rows []string
	for line := range strings.SplitSeq(text, "\n") {
		rows = append(rows, strings.Split(wrap(line, w), "\n")...)
	}
	return rows
}

// wrap wraps a line at spaces. ansi.WrapWc leaves some lines of hyphens too long.
func wrap(line string, w int) string {
	text := ansi.WrapWc(line, w, "")
	for row := range strings.SplitSeq(text, "\n") {
		if tty.Width(row) > max(2, w) {
			return ansi.HardwrapWc(line, max(2, w), true)
		}
	}
	return text
}

// wrapStyled wraps a styled row into rows of at most w columns. Each row sets and resets its own
// colours.
func wrapStyled(row string, w int) []string {
	if tty.Width(row) <= w {
		return []string{row}
	}
	rows := strings.Split(wrap(row, max(1, w)), "\n")
	for i, row := range rows[1:] { // remove combining characters of the space dropped at the break
		rows[i+1] = strings.TrimLeftFunc(row, func(r rune) bool { return r != ansi.ESC && tty.Width(string(r)) == 0 })
	}
	return tty.SplitStyled(strings.Join(rows, "\n"))
}

// breakLine splits a line of plain text into rows of at most w columns, before spaces if possible.
// It drops no characters.
func breakLine(line string, w int) []string {
	var rows []string
	for {
		n := breakAt(line, max(1, w))
		rows = append(rows, line[:n])
		if line = line[n:]; line == "" {
			return rows
		}
	}
}

// breakAt returns how many bytes of a line fit into the first row of w columns. The row ends
// before a space, unless the next word would not fit into a row.
func breakAt(line string, w int) int {
	n, _ := bytesWithin(line, w)
	if n == len(line) {
		return n
	}
	end := strings.LastIndexByte(line[:n+1], ' ')
	end = len(strings.TrimRight(line[:max(0, end)], " "))
	word := strings.TrimLeft(line[end:], " ")
	wordBytes, more := bytesWithin(word, w-1)
	if end == 0 || more && !strings.Contains(word[:wordBytes], " ") && word[wordBytes] != ' ' {
		return n
	}
	return end
}

// bytesWithin returns how many bytes of a line fit into w columns, at least one character. more
// is set if that is not the whole line.
func bytesWithin(line string, w int) (n int, more bool) {
	for n < len(line) {
		_, width, size, _ := ansi.DecodeSequenceWc(line[n:], 0, nil)
		if w -= width; w < 0 && n > 0 {
			return n, true
		}
		n += size
	}
	return n, false
}

// continuationMark precedes a row that continues the line above. No space follows it, since a
// space would look like part of the line.
const continuationMark = "↳"

// indentRows puts first before the first row, and spaces of the same width before the others
// that are not empty.
func indentRows(first string, rows []string) []string {
	indent := strings.Repeat(" ", tty.Width(first))
	for i, row := range rows {
		if i == 0 {
			rows[i] = first + row
		} else if row != "" {
			rows[i] = indent + row
		}
	}
	return rows
}

func styleRows(rows []string, style func(string) string) []string {
	for i, row := range rows {
		rows[i] = style(row)
	}
	return rows
}
