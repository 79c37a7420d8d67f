package logs

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parsers use the functions in this file instead of those of package strings,
// because Python's definition of white space differs from Go's. For patterns see
// [PythonPattern].

// isSpace reports whether Python's str.isspace and \s match r. U+001C to U+001F
// are white space in Python only.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r' || 0x1c <= r && r <= 0x1f
	}
	return unicode.IsSpace(r)
}

// lines splits at \n only. A text has one more line than it has \n.
func lines(text string) iter.Seq[string] { return strings.SplitSeq(text, "\n") }

// strip is Python's str.strip.
func strip(s string) string { return strings.TrimFunc(s, isSpace) }

func stripLeft(s string) string  { return strings.TrimLeftFunc(s, isSpace) }
func stripRight(s string) string { return strings.TrimRightFunc(s, isSpace) }

// indent returns the number of white-space characters at the start of a line.
func indent(line string) int {
	return utf8.RuneCountInString(line[:len(line)-len(stripLeft(line))])
}

// cutField returns the first word of s and the rest, as Python's str.split. The
// word is empty if there is none.
func cutField(s string) (field, rest string) {
	s = stripLeft(s)
	end := strings.IndexFunc(s, isSpace)
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// cutLastField returns the last word of s and the text before it.
func cutLastField(s string) (rest, field string) {
	s = stripRight(s)
	start := strings.LastIndexFunc(s, isSpace)
	if start < 0 {
		return "", s
	}
	_, size := utf8.DecodeRuneInString(s[start:])
	return s[:start], s[start+size:]
}

var spaces = PythonPattern(`\s+`)

// collapse replaces each run of white space with one space and trims both ends.
func collapse(s string) string { return spaces.ReplaceAllString(strip(s), " ") }
