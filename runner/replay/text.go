package replay

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// describeDifference describes in one line how two lines differ.
func describeDifference(where string, want, got []byte, inWant, inGot bool) string {
	switch {
	case !inGot:
		return fmt.Sprintf("%s is missing, recorded %s", where, excerpt(want, 0))
	case !inWant:
		return fmt.Sprintf("%s is %s, nothing more is recorded", where, excerpt(got, 0))
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	return fmt.Sprintf("%s is %s%s, recorded %s%s", where, excerpt(got, at), noNewline(got, want), excerpt(want, at), noNewline(want, got))
}

// noNewline describes a line that differs only by its missing newline.
func noNewline(line, other []byte) string {
	if string(line)+"\n" == string(other) {
		return " without a newline"
	}
	return ""
}

// Limits of an excerpt, in characters: in total, and before the difference.
const (
	maxExcerpt = 90
	leadIn     = 30
)

// excerpt returns a line quoted and printable, shortened around the byte at.
func excerpt(line []byte, at int) string {
	line = []byte(strings.TrimSuffix(string(line[:min(len(line), at+4*maxExcerpt)]), "\n"))
	before, after := "", ""
	start := 0
	if at > maxExcerpt-leadIn {
		start = at - leadIn
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

// printable returns a text as one printable line.
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
