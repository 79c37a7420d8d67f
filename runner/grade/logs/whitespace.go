package logs

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parsers use the functions in this file instead of those of package strings, because
// Python's definition of white space differs from Go's. PythonPattern does the same for patterns.

// isSpace reports whether r is white space for Python's str.isspace and \s. Unlike in Go, this
// includes U+001C to U+001F.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r' || 0x1c <= r && r <= 0x1f
	}
	return unicode.IsSpace(r)
}

// lines splits a text at each \n, but not at other line endings. A text with n of them has n+1
// lines.
func lines(text string) iter.Seq[string] { return strings.SplitSeq(text, "\n") }

// strip trims white space like Python's str.strip.
func strip(s string) string { return strings.TrimFunc(s, isSpace) }

func stripLeft(s string) string  { return strings.TrimLeftFunc(s, isSpace) }
func stripRight(s string) string { return strings.TrimRightFunc(s, isSpace) }

// indent returns the number of white-space characters at the start of a line.
func indent(line string) int {
	return utf8.RuneCountInString(line[:len(line)-len(stripLeft(line))])
}

// cutField splits s after its first word, like Python's str.split(None, 1), but rest keeps the
// white space after the word. The word is empty if s has none.
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
