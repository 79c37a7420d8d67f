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

// wrapped is a row of the screen's own in rows of w columns, wrapped at spaces.
func wrapped(row string, w int) []string {
	if len(row) <= w || tty.Width(row) <= w {
		return []string{row}
	}
	var rows []string
	for rest := signsOf(row, maxWrapped*max(w, 2)); len(rest) > 0 && len(rows) < maxWrapped; {
		n := breakAt(rest, w)
		rows = append(rows, render(rest[:n]))
		for rest = rest[n:]; len(rest) > 0 && rest[0].text == " "; {
			rest = rest[1:]
		}
	}
	return rows
}

// pieces is a line of plain text in rows of w columns, broken before spaces where
// that is possible. Put together they are the line.
func pieces(line string, w int) []string {
	if len(line) <= w || tty.Width(line) <= w {
		return []string{line}
	}
	var rows []string
	for line != "" {
		next := signsOf(line, 2*w+2) // so far breakAt looks
		if len(next) == 0 {
			break
		}
		row := render(next[:breakAt(next, w)])
		rows = append(rows, row)
		line = line[len(row):]
	}
	return rows
}

// sign is what stands in one place of a row: a character with all that goes onto
// it, and how it is coloured.
type sign struct {
	text, style string
	wide        int
}

// signsOf are the signs of a line with colours, of which each sequence says all,
// up to so many columns and one sign.
func signsOf(line string, columns int) []sign {
	var all []sign
	style := ""
	for len(line) > 0 && columns >= 0 {
		seq, wide, n, _ := ansi.DecodeSequenceWc(line, 0, nil)
		if n <= 0 {
			break
		}
		line = line[n:]
		switch {
		case wide == 0 && seq == ansi.ResetStyle:
			style = ""
		case wide == 0 && strings.HasPrefix(seq, "\x1b"):
			style = seq
		case wide == 0 && len(all) > 0: // it goes onto the one before
			all[len(all)-1].text += seq
		default:
			all = append(all, sign{seq, style, wide})
			columns -= wide
		}
	}
	return all
}

// breakAt is how many signs the first row of w columns has. It ends before a
// space, unless the word after that has no room in a row of its own.
func breakAt(signs []sign, w int) int {
	n := 0
	for column := 0; n < len(signs) && (n == 0 || column+signs[n].wide <= w); n++ {
		column += signs[n].wide
	}
	if n == len(signs) {
		return n
	}
	space := func(i int) bool { return signs[i].text == " " }
	at := n
	for at > 0 && (!space(at) || space(at-1)) {
		at--
	}
	word := at
	for word < len(signs) && space(word) {
		word++
	}
	long := 0
	for i := word; i < len(signs) && !space(i) && long < w; i++ {
		long += signs[i].wide
	}
	if at == 0 || long > w-1 {
		return n
	}
	return at
}

// render is a row of signs, which leaves no colours to the next.
func render(signs []sign) string {
	var b strings.Builder
	style := ""
	for _, s := range signs {
		if s.style != style {
			if style != "" {
				b.WriteString(ansi.ResetStyle)
			}
			b.WriteString(s.style)
			style = s.style
		}
		b.WriteString(s.text)
	}
	if style != "" {
		b.WriteString(ansi.ResetStyle)
	}
	return b.String()
}

// maxWrapped is the most rows that one of the screen's own becomes.
const maxWrapped = 100

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
