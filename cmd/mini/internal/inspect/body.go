package inspect

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// body is what can be scrolled: sections, line by line. Only the lines that are
// seen are made.
type body struct {
	rows []row
}

// row is a line of a section; line -1 is its label.
type row struct {
	section *Section
	line    int
}

// place is a row, and a piece of it where it is wrapped.
type place struct{ row, piece int }

// newBody leaves reasoning out where it is not asked for.
func newBody(sections []*Section, reasoning bool) *body {
	b := &body{}
	for _, s := range sections {
		if s.Kind == Reasoning && !reasoning {
			continue
		}
		if s.Label != "" {
			b.rows = append(b.rows, row{s, -1})
		}
		for i := range s.spans() {
			b.rows = append(b.rows, row{s, i})
		}
	}
	return b
}

// look is how a body is drawn.
type look struct {
	width int
	mark  *matcher // what to mark; nil for nothing
	plain bool     // without colours of mini's own
}

// render is a row in lines of the terminal.
func (b *body) render(i int, l look) []string {
	r := b.rows[i]
	s := r.section
	if r.line < 0 {
		label := oneLine(s.Label)
		if l.plain {
			return []string{"--- " + label}
		}
		style := faint
		if s.Kind == Alarm || s.Kind == Plain && strings.Contains(s.Label, ":") {
			style = func(t string) string { return coloured(ansi.Red, t) }
		}
		line := "── " + cutTo(label, l.width-6) + " "
		return []string{style(line + strings.Repeat("─", max(0, min(l.width, 60)-widthOf(line))))}
	}
	lead, hang := "", ""
	if s.Kind == Command {
		lead, hang = "$ ", "  "
		if r.line > 0 {
			lead = "  "
		}
	}
	var out []string
	for _, line := range s.spans()[r.line].fit(s.Text, s.Kind == Output) {
		line = marked(line, l.mark)
		pieces := []string{line}
		if l.width > 0 {
			pieces = s.wrap(line, l.width-len(lead))
		}
		for _, piece := range pieces {
			if !l.plain {
				piece = s.style(piece)
			}
			out = append(out, lead+piece)
			lead = hang
		}
	}
	return out
}

// wrap breaks prose between words, and what is to be seen as it is anywhere.
func (s *Section) wrap(line string, width int) []string {
	switch s.Kind {
	case Plain, Reasoning, Note, Alarm:
		if !strings.Contains(line, "\x1b") {
			return strings.Split(ansi.WrapWc(line, max(2, width), ""), "\n")
		}
	}
	return wrap(line, width)
}

// style colours what is mini's to colour.
func (s *Section) style(line string) string {
	if strings.Contains(line, "\x1b") {
		return line // it has colours, or marks, of its own
	}
	switch s.Kind {
	case Reasoning, Note:
		return faint(line)
	case Alarm:
		return coloured(ansi.Red, line)
	case Command:
		return ansi.NewStyle().Bold().ForegroundColor(ansi.Cyan).Styled(line)
	case Diff:
		return diffStyle(line)
	}
	return line
}

func diffStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "index "):
		return bold(line)
	case strings.HasPrefix(line, "@@"):
		return coloured(ansi.Cyan, line)
	case strings.HasPrefix(line, "+"):
		return coloured(ansi.Green, line)
	case strings.HasPrefix(line, "-"):
		return coloured(ansi.Red, line)
	}
	return line
}

// window is what is seen from a place on.
func (b *body) window(at place, height int, l look) []string {
	var out []string
	for i := at.row; i < len(b.rows) && len(out) < height; i++ {
		lines := b.render(i, l)
		if i == at.row {
			lines = lines[min(at.piece, len(lines)-1):]
		}
		out = append(out, lines...)
	}
	return out[:min(len(out), height)]
}

// lastSeen is the last row that is seen whole from a place on.
func (b *body) lastSeen(at place, height int, l look) int {
	left := height + at.piece
	for i := at.row; i < len(b.rows); i++ {
		if left -= len(b.render(i, l)); left < 0 {
			return i - 1
		}
	}
	return len(b.rows) - 1
}

// scroll goes so many lines down, or up; not past the last screen.
func (b *body) scroll(at place, by, height int, l look) place {
	if len(b.rows) == 0 {
		return place{}
	}
	at.row = min(at.row, len(b.rows)-1)
	at.piece = min(at.piece, len(b.render(at.row, l))-1)
	for ; by > 0; by-- {
		switch {
		case at.piece+1 < len(b.render(at.row, l)):
			at.piece++
		case at.row+1 < len(b.rows):
			at = place{at.row + 1, 0}
		}
	}
	for ; by < 0; by++ {
		switch {
		case at.piece > 0:
			at.piece--
		case at.row > 0:
			at = place{at.row - 1, len(b.render(at.row-1, l)) - 1}
		}
	}
	return b.clamp(at, height, l)
}

// end is the place of the last screen.
func (b *body) end(height int, l look) place {
	left := height
	for i := len(b.rows) - 1; i >= 0; i-- {
		n := len(b.render(i, l))
		if n >= left {
			return place{i, n - left}
		}
		left -= n
	}
	return place{}
}

func (b *body) clamp(at place, height int, l look) place {
	if end := b.end(height, l); at.row > end.row || at.row == end.row && at.piece > end.piece {
		return end
	}
	return at
}

// index is the row of a line, or -1.
func (b *body) index(s *Section, line int) int {
	return slices.IndexFunc(b.rows, func(r row) bool { return r.section == s && r.line == line })
}
