package markdown

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is the style of a span.
type Style int

// The styles.
const (
	CodeSpan Style = iota // between runs of backquotes of equal length
	Bold                  // between two asterisks
	Italic                // between single asterisks
	Link                  // [text](address)
	Escape                // a backslash and a sign; the text is the sign
)

// Span is a part of a line with its marks: line[Start:End]. The text between the marks is
// line[TextStart:TextEnd]. The address of a link is line[TextEnd+2:End-1].
type Span struct {
	Start, End         int
	TextStart, TextEnd int
	Style              Style
}

// Spans returns the spans of a line, ordered by Start. Spans of emphasis may contain others. No two
// spans overlap otherwise. Underscores mark nothing, since they are part of names.
func Spans(line string) []Span {
	spans := CodeSpans(line)
	spans = append(spans, links(line, spans)...)
	slices.SortFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	spans = append(spans, escapes(line, spans)...)
	slices.SortFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	spans = append(spans, emphasis(line, spans)...)
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	return spans
}

// CodeSpans returns only the code of a line.
func CodeSpans(line string) (spans []Span) {
	type run struct{ start, end, next int } // next is the index of the next run of the same length
	var runs []run
	for i := 0; i < len(line); i++ {
		if line[i] != '`' {
			continue
		}
		start := i
		for i < len(line) && line[i] == '`' {
			i++
		}
		runs = append(runs, run{start, i, -1})
	}
	later := map[int]int{} // length -> index
	for i := len(runs) - 1; i >= 0; i-- {
		n := runs[i].end - runs[i].start
		if next, found := later[n]; found {
			runs[i].next = next
		}
		later[n] = i
	}
	for i := 0; i < len(runs); i++ {
		if next := runs[i].next; next >= 0 {
			spans = append(spans, Span{runs[i].start, runs[next].end, runs[i].end, runs[next].start, CodeSpan})
			i = next
		}
	}
	return spans
}

// links returns the links outside of code.
func links(line string, codes []Span) (spans []Span) {
	open := -1 // the last opening bracket
	for i := 0; i < len(line); i++ {
		if len(codes) > 0 && codes[0].Start == i {
			i, codes, open = codes[0].End-1, codes[1:], -1
			continue
		}
		switch line[i] {
		case '[':
			open = i
		case ']':
			if open >= 0 && strings.HasPrefix(line[i+1:], "(") {
				n := strings.IndexAny(line[i+2:], " ()`")
				if n > 0 && line[i+2+n] == ')' && i > open+1 {
					spans = append(spans, Span{open, i + n + 3, open + 1, i, Link})
					i += n + 2
				}
			}
			open = -1
		}
	}
	return spans
}

// escapes returns the escaped signs outside of inner spans.
func escapes(line string, inner []Span) (spans []Span) {
	for i := 0; i+1 < len(line); i++ {
		switch {
		case len(inner) > 0 && inner[0].Start == i:
			i, inner = inner[0].End-1, inner[1:]
		case line[i] == '\\' && strings.IndexByte("\\`*_{}[]()#+-.!|<>~", line[i+1]) >= 0:
			spans = append(spans, Span{i, i + 2, i + 1, i + 2, Escape})
			i++
		}
	}
	return spans
}

// emphasis returns the bold and italic spans outside of inner spans.
func emphasis(line string, inner []Span) (spans []Span) {
	opened := [3]int{-1, -1, -1} // start of the last run that may open a span, by its length
	for i := 0; i < len(line); {
		if len(inner) > 0 && inner[0].Start == i {
			i, inner = inner[0].End, inner[1:]
			continue
		}
		if line[i] != '*' {
			i++
			continue
		}
		start := i
		for i < len(line) && line[i] == '*' {
			i++
		}
		n := i - start
		if n > 2 {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(line[:start])
		after, _ := utf8.DecodeRuneInString(line[i:])
		style := map[int]Style{1: Italic, 2: Bold}[n]
		switch {
		case opened[n] >= 0 && !isBlank(before, start > 0) && !isWord(after):
			spans = append(spans, Span{opened[n], i, opened[n] + n, start, style})
			opened = [3]int{-1, -1, -1}
		case !isBlank(after, i < len(line)) && !isWord(before):
			opened[n] = start
		}
	}
	return spans
}

// isBlank reports whether a character is white space or the end of the line.
func isBlank(r rune, exists bool) bool { return !exists || unicode.IsSpace(r) }

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
