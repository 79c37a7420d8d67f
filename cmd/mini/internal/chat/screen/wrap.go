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

// hard wraps a line of plain text wherever it must.
func hard(line string, w int) []string {
	if tty.Width(line) <= w {
		return []string{line}
	}
	return strings.Split(ansi.HardwrapWc(line, max(1, w), true), "\n")
}

// hardStyled is hard for a line with colours, as safe.Stream makes them; no row
// leaves its colours to the next, which repeats them. Rows beyond most are left out
// and counted in columns.
func hardStyled(line string, w, most int) (rows []string, more int) {
	if !strings.Contains(line, "\x1b") {
		rows = hard(line, w)
		if len(rows) > most {
			more = tty.Width(strings.Join(rows[most:], ""))
			rows = rows[:most]
		}
		return rows, more
	}
	w = max(1, w)
	var b strings.Builder
	var style string // each sequence of safe's says all
	column := 0
	end := func() {
		if style != "" {
			b.WriteString(ansi.ResetStyle)
		}
		rows = append(rows, b.String())
		b.Reset()
		b.WriteString(style)
		column = 0
	}
	for len(line) > 0 {
		seq, wide, n, _ := ansi.DecodeSequenceWc(line, 0, nil)
		if n <= 0 {
			break
		}
		line = line[n:]
		if wide == 0 && strings.HasPrefix(seq, "\x1b") {
			b.WriteString(seq)
			if style = seq; seq == ansi.ResetStyle {
				style = ""
			}
			continue
		}
		if len(rows) == most {
			more += wide
			continue
		}
		if column+wide > w {
			if end(); len(rows) == most {
				more += wide
				continue
			}
		}
		b.WriteString(seq)
		column += wide
	}
	if len(rows) < most {
		end()
	}
	return rows, more
}

// wrapped is a row of the screen's own in rows of w columns.
func wrapped(row string, w int) []string {
	if len(row) <= w || tty.Width(row) <= w {
		return []string{row}
	}
	rows, _ := hardStyled(row, w, maxWrapped)
	return rows
}

// maxWrapped is the most rows that one of the screen's own becomes.
const maxWrapped = 100

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
