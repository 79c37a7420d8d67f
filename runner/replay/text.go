package replay

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// differ says in one line how two lines differ.
func differ(where string, then, now []byte, inThen, inNow bool) string {
	switch {
	case !inNow:
		return fmt.Sprintf("%s is missing, recorded %s", where, excerpt(then, 0))
	case !inThen:
		return fmt.Sprintf("%s is %s, nothing more is recorded", where, excerpt(now, 0))
	}
	at := 0
	for at < min(len(then), len(now)) && then[at] == now[at] {
		at++
	}
	return fmt.Sprintf("%s is %s%s, recorded %s%s", where, excerpt(now, at), noEnd(now, then), excerpt(then, at), noEnd(then, now))
}

// noEnd says of a line that it lacks the end that the other one has, where that
// is all.
func noEnd(line, other []byte) string {
	if string(line)+"\n" == string(other) {
		return " without an end of line"
	}
	return ""
}

// Bounds on an excerpt, in characters: in all, and of what is shown before the
// place that it is about.
const (
	maxExcerpt = 90
	leadIn     = 30
)

// excerpt is a line in quotes, fit to be shown: the part of it around a byte,
// where it is long.
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
	text := []rune(shown(string(line[min(start, len(line)):])))
	if len(text) > maxExcerpt {
		text, after = text[:maxExcerpt], "..."
	}
	return before + `"` + string(text) + `"` + after
}

// shown is a text of one line, fit to be shown.
func shown(text string) string {
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
