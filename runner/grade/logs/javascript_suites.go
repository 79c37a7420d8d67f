package logs

import (
	"iter"
	"strings"
)

// suites are the headings above a test, by their indents: a line further to the
// right is below the one before it.
type suites struct {
	names   []string
	indents []int
}

// add takes a line as a heading, if it is indented at all.
func (s *suites) add(line string) {
	in := indent(line)
	if in == 0 {
		return
	}
	n := len(s.names)
	for n > 0 && s.indents[n-1] >= in {
		n--
	}
	s.names = append(s.names[:n], strip(line))
	s.indents = append(s.indents[:n], in)
}

// with is the headings, and the test.
func (s *suites) with(test string) []string {
	return append(s.names[:len(s.names):len(s.names)], test)
}

const dash = " - "

// after are the parts of a text behind each place where a command is, up to the
// next.
func after(text, command string) iter.Seq[string] {
	return func(yield func(string) bool) {
		first := true
		for part := range strings.SplitSeq(text, command) {
			if !first && !yield(part) {
				return
			}
			first = false
		}
	}
}

// afterLast is the text behind the last place where sep is, or all of it.
func afterLast(text, sep string) string {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[i+len(sep):]
	}
	return text
}

// beforeLast is the text before the last place where sep is, or all of it.
func beforeLast(text, sep string) string {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i]
	}
	return text
}
