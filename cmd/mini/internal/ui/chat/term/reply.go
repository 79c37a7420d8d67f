package term

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/difflines"
	"github.com/minibench/mini/internal/markdown"
	"github.com/minibench/mini/internal/sanitize"
)

// maxMarked is the length, in bytes, up to which the marks in a line are styled.
const maxMarked = 4 << 10

// replyRenderer renders a reply in Markdown. It styles the marks and never drops or adds text, so
// that what the user copies is what the model wrote, except for line breaks.
type replyRenderer struct {
	scanner  markdown.Scanner
	commands []string // code blocks that are commands are left out: showCommand shows them
	width    int

	rows  []string
	blank bool // a blank line follows the rows
	block []string
	diff  *difflines.Scanner // of the open code block; nil if it is no diff
	code  []string           // rows of the open code block
}

// replyRows renders a reply.
func replyRows(text string, commands []string, w int) []string {
	return (&replyRenderer{commands: commands, width: w}).render(text)
}

func (r *replyRenderer) render(text string) []string {
	lines := strings.Split(sanitize.Text(text), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " ")
		wasCode := r.scanner.InCode()
		switch kind := r.scanner.Line(line); {
		case kind == markdown.Fence && !wasCode:
			r.open(line)
		case kind == markdown.Fence:
			r.code = append(r.code, styleRows(breakLine(line, r.width), faint)...)
			r.closeBlock()
		case kind == markdown.Code:
			next := ""
			if i+1 < len(lines) {
				next = lines[i+1]
			}
			r.addCode(line, next)
		case line == "":
			r.blank = true
		default:
			r.add(markedRows(line, kind, r.width)...)
		}
	}
	r.closeBlock()
	return r.rows
}

// add adds rows, after a blank row if there was a blank line.
func (r *replyRenderer) add(rows ...string) {
	if r.blank && len(r.rows) > 0 && len(rows) > 0 {
		r.rows = append(r.rows, "")
	}
	r.blank = r.blank && len(rows) == 0
	r.rows = append(r.rows, rows...)
}

// open begins a code block.
func (r *replyRenderer) open(fence string) {
	r.block, r.diff = nil, nil
	r.code = styleRows(breakLine(fence, r.width), faint)
	if info := markdown.FenceInfo(fence); info == "diff" || info == "patch" {
		r.diff = new(difflines.Scanner)
	}
}

// addCode adds a line of a code block.
func (r *replyRenderer) addCode(line, next string) {
	r.block = append(r.block, line)
	style := unstyled
	if r.diff != nil {
		style = steps.DiffStyle(r.diff.Line(line, next))
	}
	for i, row := range breakLine(line, r.width-1) {
		if row = style(row); i > 0 {
			row = faint(continuationMark) + row
		}
		r.code = append(r.code, row)
	}
}

// closeBlock adds the code block, unless it is a command.
func (r *replyRenderer) closeBlock() {
	body := strings.TrimSpace(strings.Join(r.block, "\n"))
	isCommand := slices.ContainsFunc(r.commands, func(c string) bool { return strings.TrimSpace(sanitize.Text(c)) == body })
	if !isCommand || len(r.block) == 0 {
		r.add(r.code...)
	}
	r.block, r.code, r.diff = nil, nil, nil
}

// markedRows renders a line outside of code blocks. Further rows of an item of a list are indented.
func markedRows(line string, kind markdown.Kind, w int) []string {
	indent := 0
	switch {
	case len(line) > maxMarked:
		return breakLine(line, min(w, maxProseWidth))
	case kind == markdown.Heading:
		return styleRows(wrapWords(line, w), bold)
	case kind == markdown.Item:
		if indent = markdown.ItemIndent(line); indent > w/2 {
			indent = 0
		}
	}
	w = max(1, min(w, maxProseWidth)-indent)
	var b strings.Builder
	end := indent
	for _, span := range markdown.Spans(line) {
		if span.Start < end {
			continue // within the mark of the item
		}
		b.WriteString(line[end:span.Start])
		b.WriteString(spanStyle(span.Style)(line[span.Start:span.End]))
		end = span.End
	}
	text := b.String() + line[end:]
	rows := wrapStyled(text, w)
	if indent == 0 {
		return rows
	}
	rows[0] = coloured(cyan, line[:indent]) + rows[0]
	for i := range rows[1:] {
		rows[i+1] = strings.Repeat(" ", indent) + rows[i+1]
	}
	return rows
}

func spanStyle(s markdown.Style) func(string) string {
	switch s {
	case markdown.Bold:
		return bold
	case markdown.Italic:
		return func(text string) string { return styled(ansi.NewStyle().Italic(true), text) }
	}
	return colour(cyan)
}
