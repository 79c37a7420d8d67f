package markdown

import (
	"slices"
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
)

// Span is a part of a line with its marks: line[Start:End].
type Span struct {
	Start, End int
	Style      Style
}

// Spans returns the spans of a line, in order and without overlaps. Underscores mark nothing, since
// they are part of names.
func Spans(line string) []Span {
	spans := CodeSpans(line)
	start := 0
	for _, code := range slices.Clone(spans) {
		spans = append(spans, emphasis(line, start, code.Start)...)
		start = code.End
	}
	spans = append(spans, emphasis(line, start, len(line))...)
	slices.SortFunc(spans, func(a, b Span) int { return a.Start - b.Start })
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
			spans = append(spans, Span{runs[i].start, runs[next].end, CodeSpan})
			i = next
		}
	}
	return spans
}

// emphasis returns the bold and italic spans of line[from:to], which has no code.
func emphasis(line string, from, to int) (spans []Span) {
	opened := [3]int{-1, -1, -1} // start of the last run that may open a span, by its length
	for i := from; i < to; {
		if line[i] != '*' {
			i++
			continue
		}
		start := i
		for i < to && line[i] == '*' {
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
			spans = append(spans, Span{opened[n], i, style})
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
