// Package table formats tables and paragraphs for a terminal.
package table

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/text"
)

// minColumn is the minimum width of a truncated column, in cells.
const minColumn = 8

// ColumnGap separates columns.
const ColumnGap = "  "

// Table formats rows as an aligned table; the first row is the head. columns
// has a letter for each column: l for left-aligned, r for right-aligned, s for
// left-aligned and truncated at the end, i (ids) for left-aligned and truncated
// in the middle. If the table is wider than width cells, Table truncates s columns,
// the widest first, down to minColumn, and then i columns. Table changes the strings
// in rows to printable ones.
func Table(width int, columns string, rows [][]string) string {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i := range row {
			row[i] = text.Printable(row[i])
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	for _, truncated := range "si" {
		for excess := TotalWidth(widths) - width; excess > 0; excess-- {
			widest := -1
			for i, c := range columns {
				if c == truncated && widths[i] > minColumn && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
	var s strings.Builder
	for n, row := range rows {
		line := ""
		for i, cell := range row {
			if columns[i] == 'i' && n > 0 {
				cell = TruncateMiddle(cell, widths[i])
			}
			cell = ansi.Truncate(cell, widths[i], "…")
			padding := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if i > 0 {
				line += ColumnGap
			}
			if columns[i] == 'r' {
				line += padding + cell
			} else {
				line += cell + padding
			}
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return s.String()
}

// TruncateMiddle shortens s to width cells. It removes the middle, or the end
// if the width is too small. It counts each code point separately, as terminals
// do by default.
func TruncateMiddle(s string, width int) string {
	full := ansi.StringWidthWc(s)
	switch {
	case full <= width:
		return s
	case width <= 0:
		return ""
	case width < minColumn:
		return ansi.TruncateWc(s, width, "…")
	}
	tail := min(max(width/2, min(width-3, 6)), 8)
	return ansi.TruncateWc(s, width-tail, "…") + ansi.TruncateLeftWc(s, full-tail, "")
}

// TotalWidth returns the width of a row whose columns have the given widths.
func TotalWidth(widths []int) int {
	sum := len(ColumnGap) * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// Paragraph wraps text to at most maxLines lines of width cells, each with an
// indent. Lines are wider if width leaves fewer than 24 cells for the text.
func Paragraph(text string, width, indent, maxLines int) string {
	textWidth := max(width-indent, 3*minColumn)
	wrapped := Wrap(text, textWidth)
	if len(wrapped) > maxLines {
		last := ansi.Truncate(strings.Join(wrapped[maxLines-1:], " "), textWidth, "…")
		wrapped = append(wrapped[:maxLines-1], last)
	}
	padding := strings.Repeat(" ", indent)
	return padding + strings.Join(wrapped, "\n"+padding) + "\n"
}

// Wrap makes text printable and wraps it between words to lines of at most
// width cells. It breaks a word only if the word is longer than a line.
func Wrap(content string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text.Printable(content)) {
		size := ansi.StringWidth(word)
		if line != "" && used+1+size <= width {
			line += " " + word
			used += 1 + size
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for size > width {
			head := ansi.Truncate(word, width, "")
			if head == "" { // no character fits
				break
			}
			lines = append(lines, head)
			word = strings.TrimPrefix(word, head)
			size = ansi.StringWidth(word)
		}
		line, used = word, size
	}
	return append(lines, line)
}
