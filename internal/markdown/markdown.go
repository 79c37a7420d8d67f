// Package markdown finds the marks of Markdown in untrusted text, a line at a time and in linear
// time: fences, headings, items of lists, quotes, rows of tables, code between backquotes, links and
// emphasis. It renders nothing.
//
//	var s markdown.Scanner
//	for line := range strings.SplitSeq(reply, "\n") {
//		switch s.Line(line) {
//		case markdown.Code: ...
//		case markdown.Text: markdown.Spans(line)
package markdown

import "strings"

// Kind is the kind of a line.
type Kind int

// The kinds of lines.
const (
	Text    Kind = iota
	Heading      // one to six number signs and a title
	Item         // of a list
	Fence        // the first or the last line of a code block
	Code         // a line of a code block
	Quote        // begins with >
	Row          // of a table: begins with |
	Rule         // a horizontal line
)

// Scanner says what lines are. The zero value is at the start of a text.
type Scanner struct {
	fence string // of the open code block; empty outside of one
}

// Line returns the kind of the next line, which has no line end.
func (s *Scanner) Line(line string) Kind {
	run, info := fenceOf(line)
	switch {
	case s.fence != "" && strings.HasPrefix(run, s.fence) && strings.TrimSpace(info) == "":
		s.fence = ""
		return Fence
	case s.fence != "":
		return Code
	case run != "" && (run[0] == '~' || !strings.Contains(info, "`")):
		s.fence = run
		return Fence
	case isHeading(line):
		return Heading
	case isRule(line):
		return Rule
	case ItemIndent(line) > 0:
		return Item
	}
	switch trimmed := strings.TrimLeft(line, " "); {
	case strings.HasPrefix(trimmed, ">"):
		return Quote
	case strings.HasPrefix(trimmed, "|"):
		return Row
	}
	return Text
}

// InCode reports whether a code block is open.
func (s *Scanner) InCode() bool { return s.fence != "" }

// Skip scans text without returning what its lines are.
func (s *Scanner) Skip(text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		s.Line(line)
	}
}

// FenceInfo returns the text after the signs of a fence: the language of the code.
func FenceInfo(line string) string {
	_, info := fenceOf(line)
	return strings.TrimSpace(info)
}

// fenceOf returns the three or more signs of a fence, and the text after them; "" if the line is
// no fence.
func fenceOf(line string) (run, info string) {
	line = strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return "", ""
	}
	info = strings.TrimLeft(line, line[:1])
	return line[:len(line)-len(info)], info
}

// isRule reports whether a line is three or more of the same sign.
func isRule(line string) bool {
	line = strings.ReplaceAll(line, " ", "")
	return len(line) >= 3 && strings.IndexByte("-*_", line[0]) >= 0 && strings.Trim(line, line[:1]) == ""
}

// Cells returns the cells of a row of a table, without the white space around them.
func Cells(row string) (cells []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	codes := CodeSpans(row)
	start := 0
	for i := 0; i < len(row); i++ {
		switch {
		case len(codes) > 0 && codes[0].Start == i:
			i, codes = codes[0].End-1, codes[1:]
		case row[i] == '\\':
			i++
		case row[i] == '|':
			cells, start = append(cells, strings.TrimSpace(row[start:i])), i+1
		}
	}
	return append(cells, strings.TrimSpace(row[start:]))
}

// IsDelimiter reports whether the cells are those of the line below the head of a table.
func IsDelimiter(cells []string) bool {
	for _, c := range cells {
		if strings.Trim(c, "-:") != "" || !strings.Contains(c, "-") {
			return false
		}
	}
	return len(cells) > 0
}

func isHeading(line string) bool {
	title := strings.TrimLeft(line, "#")
	n := len(line) - len(title)
	return n > 0 && n <= 6 && strings.HasPrefix(title, " ")
}

// maxNumber is the number of digits in the mark of an item.
const maxNumber = 9

// ItemIndent returns the number of bytes before the text of an item of a list: white space and the
// mark; 0 if the line is none. The bytes are one column each, unless there are tabs.
func ItemIndent(line string) int {
	rest := strings.TrimLeft(line, " \t")
	mark := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	switch {
	case mark > 0 && mark <= maxNumber && len(rest) > mark && (rest[mark] == '.' || rest[mark] == ')'):
		mark++
	case mark == 0 && rest != "" && strings.IndexByte("-*+", rest[0]) >= 0:
		mark = 1
	default:
		return 0
	}
	text := strings.TrimLeft(rest[mark:], " ")
	if text == "" || len(text) == len(rest)-mark {
		return 0
	}
	return len(line) - len(text)
}
