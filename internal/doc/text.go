package doc

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
)

// WriteText writes the Doc in lines of at most width cells, except what is never cut.
func (d *Doc) WriteText(w io.Writer, width int) error {
	_, err := io.WriteString(w, d.Text(width))
	return err
}

// Text returns the Doc in lines of at most width cells, except what is never cut.
func (d *Doc) Text(width int) string {
	var s strings.Builder
	for _, b := range d.Blocks {
		s.WriteString(b.asText(width))
	}
	return s.String()
}

func (b Block) asText(width int) string {
	switch b.Kind {
	case Paragraph:
		return table.Paragraph(b.Text, width, b.Indent, b.Lines)
	case Heading:
		return table.Paragraph(b.Text, width, 0, headingLines)
	case Line:
		return strings.Repeat(" ", b.Indent) + text.Printable(b.Text) + "\n"
	case List:
		return listText(b.Text, b.Items, width, b.Lines)
	case Excerpt:
		return excerptText(b.Text, b.Mark, width, b.Lines)
	case Table:
		return b.tableText(width)
	}
	return "\n"
}

// listText returns the label and as many items as fit into a number of lines, at least one.
func listText(label string, items []string, width, lines int) string {
	for n := min(len(items), maxListed); ; n-- {
		line := listLine(label, items, n)
		if len(table.Wrap(line, width)) <= lines {
			return table.Paragraph(line, width, 0, lines)
		}
		if n == 1 {
			return ansi.Truncate(text.Printable(line), width, "…") + "\n"
		}
	}
}

func listLine(label string, items []string, n int) string {
	line := label + ": " + strings.Join(items[:n], ", ")
	if more := len(items) - n; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// excerptText returns lines of a text, and a line for those that are left out.
func excerptText(content, mark string, width, limit int) string {
	content = strings.TrimRight(content, "\n ")
	if content == "" {
		return ""
	}
	lines := strings.Split(content, "\n")
	var s strings.Builder
	if n := len(lines); limit < 0 && n > -limit {
		lines = lines[n+limit:]
		s.WriteString(mark + "…\n")
	}
	for i, line := range lines {
		if i == 1 {
			mark = strings.Repeat(" ", len(mark))
		}
		if limit > 0 && i == limit {
			fmt.Fprintf(&s, "%s… and %s\n", mark, text.Count(len(lines)-i, "more line"))
			break
		}
		s.WriteString(strings.TrimRight(mark+ansi.Truncate(text.Printable(line), width-len(mark), "…"), " ") + "\n")
	}
	return s.String()
}

func (b Block) tableText(width int) string {
	columns, rows := b.Columns, b.Rows
	for b.Keep > 0 && len(columns) > b.Keep && tableWidth(rows) > width {
		columns = columns[:len(columns)-1]
		shorter := make([][]string, len(rows))
		for i, row := range rows {
			shorter[i] = row[:len(columns)]
		}
		rows = shorter
	}
	if last := columns[len(columns)-1]; last == 'w' || last == 'c' {
		return hangingText(columns, rows, width)
	}
	lines := strings.SplitAfter(table.Table(width, columns, rows), "\n")
	var s strings.Builder
	for i, line := range lines {
		s.WriteString(line)
		if d := b.Below[i]; d != nil {
			s.WriteString(d.Text(width))
		}
	}
	return s.String()
}

// Limits of the last column of a table, in cells and lines.
const (
	minHanging   = 40 // the least width in which words are wrapped beside the other columns
	below        = 4  // the indent of what is below its row
	hangingLines = 8
)

// hangingText returns a table whose last column is wrapped, or never cut.
func hangingText(columns string, rows [][]string, width int) string {
	last := len(columns) - 1
	heads := make([][]string, len(rows))
	for i, row := range rows {
		heads[i] = row[:last]
	}
	lines := strings.Split(table.Table(width, columns[:last], heads), "\n")
	indent := tableWidth(heads) + len(table.ColumnGap)
	var s strings.Builder
	for i, row := range rows {
		head, cell := lines[i], text.Printable(row[last])
		padding := strings.Repeat(" ", max(0, indent-ansi.StringWidth(head)))
		switch {
		case cell == "":
			s.WriteString(head + "\n")
		case columns[last] == 'w' && indent+min(ansi.StringWidth(cell), minHanging) > width:
			s.WriteString(strings.TrimRight(head, " ") + "\n" + table.Paragraph(cell, width, below, hangingLines))
		case columns[last] == 'w':
			s.WriteString(head + padding + strings.TrimLeft(table.Paragraph(cell, width, indent, hangingLines), " "))
		case indent+ansi.StringWidth(cell) > width:
			s.WriteString(strings.TrimRight(head, " ") + "\n" + strings.Repeat(" ", below) + cell + "\n")
		default:
			s.WriteString(head + padding + cell + "\n")
		}
	}
	return s.String()
}

// tableWidth returns the width of rows whose cells are not cut, in cells of the terminal.
func tableWidth(rows [][]string) int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(text.Printable(cell)))
		}
	}
	return table.TotalWidth(widths)
}
