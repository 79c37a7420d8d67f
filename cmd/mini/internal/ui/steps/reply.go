package steps

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/difflines"
	"github.com/minibench/mini/internal/markdown"
	"github.com/minibench/mini/internal/sanitize"
)

// Reply renders the Markdown of a reply in rows while the reply arrives. A row never changes after
// Write has returned it. To keep that promise, Write holds tables until they are complete, and
// everything from the first code block on that may be a command: Close leaves out the commands.
//
// Headings, emphasis, code, quotes, links and tables are shown by styles instead of their marks.
// Plain rows have no styles and keep the marks.
type Reply struct {
	Width int // columns; 0 disables wrapping
	Plain bool
	// Break breaks lines of code that are longer than a row. If it is not set, the terminal does, so
	// that a copied line has no line breaks.
	Break bool

	pending string // the unfinished line
	scanner markdown.Scanner
	held    []string // the lines from a code block on that may be a command; nil if there is none
	table   []string
	closing bool
	command func(code string) bool // reports whether a code block is a command

	code      []string // lines of the open code block
	codeStart int      // index of its first row
	highlight highlighter
	diff      *difflines.Scanner // nil if the block is no diff

	rows    []string // not returned yet
	sources []string // the line of each row in rows, without styles; empty for its second and later rows
	any     bool     // there was a row
	blank   bool     // a blank line follows
}

const (
	maxPending = 64 << 10 // bytes of a line of a reply; more are another line
	maxStyled  = 4 << 10  // bytes of a line whose marks are rendered
	maxTable   = 200      // rows of a table that are aligned
	minCell    = 8        // columns of a cell that is wrapped
)

// Write adds a piece of the reply and returns the rows that are finished.
func (r *Reply) Write(text string) []string {
	r.read(text)
	return r.take()
}

func (r *Reply) read(text string) {
	r.pending += text
	for {
		line, rest, found := strings.Cut(r.pending, "\n")
		if !found && len(r.pending) < maxPending {
			return
		}
		r.pending = rest
		r.addLine(line)
	}
}

// Close returns the remaining rows, without the code blocks that are commands.
func (r *Reply) Close(commands []string) []string {
	r.finish(commands)
	return r.take()
}

func (r *Reply) finish(commands []string) {
	r.closing = true
	r.command = func(code string) bool {
		return slices.ContainsFunc(commands, func(c string) bool { return strings.TrimSpace(sanitize.Text(c)) == code })
	}
	held := r.held
	r.held = nil
	for _, line := range held {
		r.line(line)
	}
	if r.pending != "" {
		r.addLine(r.pending)
	}
	r.closeTable()
	if r.scanner.InCode() {
		r.closeCode()
	}
	r.pending = ""
}

// Live returns the end of what Write has not returned yet, in at most limit rows of the width.
func (r Reply) Live(limit int) []string {
	if limit <= 0 || r.pending == "" && len(r.held)+len(r.table) == 0 {
		return nil
	}
	if n := len(r.held) - limit; n > 0 {
		for _, line := range r.held[:n] {
			r.scanner.Line(line)
		}
		r.held = r.held[n:]
	}
	if n := len(r.pending) - maxStyled; n > 0 {
		r.pending = strings.ToValidUTF8(r.pending[n:], "")
	}
	if r.diff != nil {
		diff := *r.diff
		r.diff = &diff
	}
	r.Break = true
	rows := r.Close(nil)
	return rows[max(0, len(rows)-limit):]
}

// Unfinished returns the rows of the unfinished line, with the space at its end, unless they may be
// shown in another form when the line is finished.
func (r Reply) Unfinished() []string {
	if r.pending == "" || len(r.held)+len(r.table) > 0 || strings.ContainsAny(r.pending[:1], "|`~") {
		return nil
	}
	end := ""
	if strings.HasSuffix(r.pending, " ") {
		end = " "
	}
	rows := r.Close(nil)
	if len(rows) > 0 {
		rows[len(rows)-1] += end
	}
	return rows
}

func (r *Reply) take() []string {
	rows := r.rows
	r.rows, r.sources = nil, nil
	return rows
}

func (r *Reply) addLine(line string) {
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(strings.TrimSuffix(line, "\r")), "\n"), "\n") {
		if line = strings.TrimRight(line, " "); r.held != nil {
			r.held = append(r.held, line)
		} else {
			r.line(line)
		}
	}
}

// line renders the next line.
func (r *Reply) line(line string) {
	before := r.scanner
	kind := r.scanner.Line(line)
	if kind != markdown.Row {
		r.closeTable()
	}
	switch {
	case kind == markdown.Fence && !before.InCode() && !r.closing && mayBeCommand(markdown.FenceInfo(line)):
		r.scanner, r.held = before, []string{line}
	case kind == markdown.Fence && !before.InCode():
		r.openCode(line)
	case kind == markdown.Fence:
		if r.Plain {
			r.add(line, line)
		}
		r.closeCode()
	case kind == markdown.Code:
		r.addCode(line)
	case line == "":
		r.blank = true
	case kind == markdown.Row:
		if r.table = append(r.table, line); len(r.table) >= maxTable {
			r.closeTable()
		}
	default:
		r.add(line, r.textRows(line, kind)...)
	}
}

// mayBeCommand reports whether a code block with this text after its fence may be a command.
func mayBeCommand(info string) bool {
	info, _, _ = strings.Cut(info, " ")
	return strings.Contains(info, "bash") || slices.Contains([]string{"", "sh", "shell", "zsh", "console"}, info)
}

// add adds the rows of a line, after a blank row if there was a blank line.
func (r *Reply) add(line string, rows ...string) {
	if r.blank && r.any {
		rows = append([]string{""}, rows...)
		r.sources = append(r.sources, "")
	}
	r.any, r.blank = true, false
	r.rows = append(r.rows, rows...)
	r.sources = append(r.sources, line)
	r.sources = append(r.sources, make([]string, len(r.rows)-len(r.sources))...)
}

func (r *Reply) openCode(fence string) {
	info := markdown.FenceInfo(fence)
	r.code, r.codeStart, r.diff = nil, len(r.rows), nil
	r.highlight = highlighter{language: languageOf(info)}
	if info == "diff" || info == "patch" {
		r.diff = new(difflines.Scanner)
	}
	if r.Plain {
		r.add(fence, fence)
	} else {
		r.blank = true
	}
}

func (r *Reply) addCode(line string) {
	if r.closing {
		r.code = append(r.code, line)
	}
	rows := []string{line}
	if r.Break {
		rows = HardWrap(line, r.Width)
	}
	for i, row := range rows {
		switch {
		case r.Plain:
		case r.diff != nil:
			rows[i] = DiffStyle(r.diff.Line(row, ""))(row)
		default:
			rows[i] = r.highlight.line(row)
		}
	}
	r.add(line, rows...)
}

// closeCode ends a code block. It drops the rows of a command.
func (r *Reply) closeCode() {
	if r.closing && len(r.code) > 0 && r.command(strings.TrimSpace(strings.Join(r.code, "\n"))) {
		n := min(r.codeStart, len(r.rows))
		r.rows, r.sources = r.rows[:n], r.sources[:n]
		r.blank = true
	}
	r.blank = r.blank || !r.Plain
}

// textRows renders a line outside of code blocks. Further rows of an item or a quote are indented.
func (r *Reply) textRows(line string, kind markdown.Kind) []string {
	width := r.Width
	if width > 0 {
		width = min(width, MaxProse)
	}
	if r.Plain || len(line) > maxStyled {
		if indent := markdown.ItemIndent(line); kind == markdown.Item && width > 0 && indent <= width/2 {
			return Indent(line[:indent], Wrap(line[indent:], width-indent))
		}
		return Wrap(line, width)
	}
	base, first := ansi.NewStyle(), ""
	switch kind {
	case markdown.Rule:
		return []string{Faint("────────")}
	case markdown.Heading:
		line, base = strings.TrimSpace(strings.Trim(line, "#")), base.Bold()
	case markdown.Item:
		indent := markdown.ItemIndent(line)
		if width > 0 && indent > width/2 {
			return Wrap(line, width)
		}
		first, line = Coloured(ansi.Cyan, line[:indent]), line[indent:]
	case markdown.Quote:
		line, base = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(line, " "), ">"), " "), base.Italic(true)
		rows := Wrap(inline(line, base), max(0, width-2))
		for i := range rows {
			rows[i] = Faint("│ ") + rows[i]
		}
		return rows
	}
	if width > 0 {
		width -= terminal.Width(first)
	}
	return Indent(first, Wrap(inline(line, base), width))
}

// inline renders the marks within a line.
func inline(line string, base ansi.Style) string {
	var b strings.Builder
	renderSpans(&b, line, 0, len(line), markdown.Spans(line), base)
	return b.String()
}

func renderSpans(b *strings.Builder, line string, from, to int, spans []markdown.Span, style ansi.Style) {
	text := func(end int) {
		if end > from && len(style) > 0 {
			b.WriteString(style.Styled(line[from:end]))
		} else if end > from {
			b.WriteString(line[from:end])
		}
	}
	for i, s := range spans {
		if s.Start >= to {
			break
		}
		if s.Start < from {
			continue // within the span before
		}
		text(s.Start)
		inner := slices.Clone(style)
		switch s.Style {
		case markdown.CodeSpan:
			inner = inner.ForegroundColor(ansi.Cyan)
		case markdown.Bold:
			inner = inner.Bold()
		case markdown.Italic:
			inner = inner.Italic(true)
		case markdown.Link:
			inner = inner.Underline(true)
		}
		renderSpans(b, line, s.TextStart, s.TextEnd, spans[i+1:], inner)
		if address := line[s.TextEnd:s.End]; s.Style == markdown.Link {
			if address = address[2 : len(address)-1]; address != line[s.TextStart:s.TextEnd] {
				b.WriteString(Faint(" (" + address + ")"))
			}
		}
		from = s.End
	}
	text(to)
}

// closeTable renders the lines of a table. Lines that are none are text.
func (r *Reply) closeTable() {
	lines := r.table
	if r.table = nil; len(lines) == 0 {
		return
	}
	if len(lines) > 1 && markdown.IsDelimiter(markdown.Cells(lines[1])) {
		if rows := r.tableRows(lines); rows != nil {
			r.add(strings.Join(lines, " "), rows...)
			return
		}
	}
	for _, line := range lines {
		r.add(line, r.textRows(line, markdown.Text)...)
	}
}

// tableRows aligns a table; nil if it is too wide.
func (r *Reply) tableRows(lines []string) []string {
	delimiter := markdown.Cells(lines[1])
	columns := len(delimiter)
	isLong := func(line string) bool { return len(line) > maxStyled }
	if slices.ContainsFunc(lines, isLong) || r.Width > 0 && (minCell+2)*columns-2 > max(r.Width, minCell) && columns > 8 {
		return nil
	}
	var cells [][]string
	widths := make([]int, columns)
	for i, line := range lines {
		row := make([]string, columns)
		copy(row, markdown.Cells(line))
		for j, cell := range row {
			if cell = strings.ReplaceAll(cell, `\|`, "|"); !r.Plain && i == 0 {
				cell = inline(cell, ansi.NewStyle().Bold())
			} else if !r.Plain {
				cell = inline(cell, ansi.NewStyle())
			}
			if row[j] = cell; i != 1 {
				widths[j] = max(widths[j], terminal.Width(cell))
			}
		}
		cells = append(cells, row)
	}
	for excess := sum(widths) + 2*(columns-1) - r.Width; r.Width > 0 && excess > 0; excess-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= minCell {
			return nil
		}
		widths[widest]--
	}
	var rows []string
	for i, row := range cells {
		if i == 1 {
			line := map[bool]string{true: "-", false: "─"}[r.Plain]
			for j := range row {
				row[j] = strings.Repeat(line, widths[j])
				if !r.Plain {
					row[j] = Faint(row[j])
				}
			}
		}
		parts, height := make([][]string, columns), 0
		for j, cell := range row {
			parts[j] = Wrap(cell, widths[j])
			height = max(height, len(parts[j]))
		}
		for y := range height {
			text := ""
			for j := range parts {
				part := ""
				if y < len(parts[j]) {
					part = parts[j][y]
				}
				switch isRight := strings.HasSuffix(delimiter[j], ":") && !strings.HasPrefix(delimiter[j], ":"); {
				case isRight:
					part = terminal.PadLeft(part, widths[j])
				case j < columns-1:
					part = terminal.PadRight(part, widths[j])
				}
				text += strings.Repeat(" ", min(2*j, 2)) + part
			}
			rows = append(rows, text)
		}
	}
	return rows
}

func sum(numbers []int) (n int) {
	for _, x := range numbers {
		n += x
	}
	return n
}
