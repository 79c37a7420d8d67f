package steps

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// MaxProse is the longest line of prose, in columns; longer lines are hard to read.
const MaxProse = 100

// Wrap breaks a sanitized line, which may have colours, at spaces into rows of at most width
// columns. It breaks a word only if the word is longer than a row. Each row sets and resets its own
// colours. A width of 0 disables wrapping.
func Wrap(line string, width int) []string {
	if width <= 0 || terminal.Width(line) <= width {
		return []string{line}
	}
	width = max(2, width)
	var out, word strings.Builder
	used, gap, wordWidth := 0, "", 0 // gap is the white space before the word
	flush := func() {
		switch {
		case wordWidth == 0:
		case used+terminal.Width(gap)+wordWidth > width:
			if used > 0 {
				out.WriteByte('\n')
			}
			used, gap = wordWidth, ""
		default:
			out.WriteString(gap)
			used, gap = used+terminal.Width(gap)+wordWidth, ""
		}
		out.WriteString(word.String())
		word.Reset()
		wordWidth = 0
	}
	for rest := line; rest != ""; {
		seq, w, n, _ := ansi.DecodeSequenceWc(rest, 0, nil)
		rest = rest[n:]
		if seq == " " {
			flush()
		}
		if isMark := w == 0 && seq[0] != ansi.ESC; seq == " " || isMark && wordWidth == 0 {
			gap += seq
			continue
		}
		if wordWidth+w > width {
			flush()
		}
		word.WriteString(seq)
		wordWidth += w
	}
	flush()
	return terminal.SplitStyled(out.String())
}

// HardWrap splits a sanitized line into rows of the given width, at any column. A width of 0
// disables wrapping.
func HardWrap(line string, width int) []string {
	if width <= 0 {
		return []string{line}
	}
	width = max(2, width)
	if len(line) <= width { // no character has more columns than bytes
		return []string{line}
	}
	return terminal.SplitStyled(ansi.HardwrapWc(line, width, true))
}

// Indent puts first before the first row, and spaces of the same width before the others that are
// not empty.
func Indent(first string, rows []string) []string {
	spaces := strings.Repeat(" ", terminal.Width(first))
	for i, row := range rows {
		if i == 0 {
			rows[i] = first + row
		} else if row != "" {
			rows[i] = spaces + row
		}
	}
	return rows
}

// Prose wraps a sanitized text and styles its rows. It joins blank lines.
func Prose(text string, width int, style func(string) string) []string {
	if width > 0 {
		width = min(width, MaxProse)
	}
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		if line == "" && (len(rows) == 0 || rows[len(rows)-1] == "") {
			continue
		}
		for _, row := range Wrap(line, width) {
			rows = append(rows, style(row))
		}
	}
	return rows
}
