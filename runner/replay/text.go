package replay

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// describeDifference describes in one line how two lines differ. inWant and inGot are
// false if the line is missing on that side.
func describeDifference(where string, want, got []byte, inWant, inGot bool) string {
	switch {
	case !inGot:
		return fmt.Sprintf("%s is missing, recorded %s", where, excerpt(want, 0))
	case !inWant:
		return fmt.Sprintf("%s is %s, nothing more is recorded", where, excerpt(got, 0))
	}
	diffAt := 0
	for diffAt < min(len(want), len(got)) && want[diffAt] == got[diffAt] {
		diffAt++
	}
	return fmt.Sprintf("%s is %s%s, recorded %s%s", where, excerpt(got, diffAt), noNewline(got, want), excerpt(want, diffAt), noNewline(want, got))
}

// noNewline returns a note if line equals other except for a missing newline.
func noNewline(line, other []byte) string {
	if string(line)+"\n" == string(other) {
		return " without a newline"
	}
	return ""
}

// Limits of an excerpt: maxExcerpt is the number of characters between the
// quotes, leadIn the number of bytes before the difference.
const (
	maxExcerpt = 90
	leadIn     = 30
)

// excerpt returns a printable quotation of a line. A long line is shortened to the part
// around the byte diffAt.
func excerpt(line []byte, diffAt int) string {
	line = []byte(strings.TrimSuffix(string(line[:min(len(line), diffAt+4*maxExcerpt)]), "\n"))
	before, after := "", ""
	start := 0
	if diffAt > maxExcerpt-leadIn {
		start = diffAt - leadIn
		for start > 0 && start < len(line) && !utf8.RuneStart(line[start]) {
			start--
		}
		before = "..."
	}
	text := []rune(printable(string(line[min(start, len(line)):])))
	if len(text) > maxExcerpt {
		text, after = text[:maxExcerpt], "..."
	}
	return before + `"` + string(text) + `"` + after
}

// printable converts a text to one printable line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
