package logs

import (
	"strings"
	"unicode/utf8"
)

// fileWords begin the line that a runner prints for a file of tests.
var fileWords = [...]struct {
	word string
	s    Status
}{{"PASS", Passed}, {"FAIL", Failed}}

// carbon reads "PASS path/to/test.js (5.3 s)": files, not tests. The first of
// the timings that occurs anywhere on the line ends the name.
func carbon(line string) (string, Status, bool) {
	for _, w := range fileWords {
		rest, ok := strings.CutPrefix(line, w.word)
		name, space := cutSpace(rest)
		if !ok || !space {
			continue
		}
		for _, unit := range [...]string{"ms)", " s)", "s)"} {
			if before, ok := cutTiming(name, func(s string) bool { return isCarbonTiming(s, unit) }); ok {
				return before, w.s, true
			}
		}
		return name, w.s, true
	}
	return none()
}

// isCarbonTiming finds "5.3ms)"; a space in the unit stands for any space.
func isCarbonTiming(s, unit string) bool {
	rest := strings.TrimLeftFunc(s, isDecimal)
	if len(rest) == len(s) {
		return false
	}
	if after, ok := strings.CutPrefix(unit, " "); ok {
		unit = after
		if rest, ok = cutSpace(rest); !ok {
			return false
		}
	}
	return strings.HasPrefix(rest, unit)
}

func isDecimal(r rune) bool { return r == '.' || isDigit(r) }

// grommet reads the same lines: failures first, then passes, which win. The
// space after the word may be the end of the line; then the name is the next.
func grommet(t *Tests, text string, _ Subject) error {
	for _, w := range [...]int{1, 0} {
		word, s := fileWords[w].word, fileWords[w].s
		atLines(text, func(rest string) int {
			after, ok := strings.CutPrefix(rest, word)
			if !ok {
				return 0
			}
			name, ok := cutSpace(after)
			if !ok {
				return 0
			}
			end := endOfLine(name)
			t.Set(cutGrommetTiming(strip(name[:end])), s)
			return len(rest) - len(name) + end
		})
	}
	return nil
}

// cutGrommetTiming takes " (5.3 s)" or " (12ms)" from the end of a name.
func cutGrommetTiming(name string) string {
	inner, ok := strings.CutSuffix(name, "s)")
	if !ok {
		return name
	}
	inner = strings.TrimSuffix(inner, "m")
	if before, ok := cutSpaceEnd(inner); ok {
		inner = before
	}
	rest := strings.TrimRightFunc(inner, isDecimal)
	if len(rest) == len(inner) {
		return name
	}
	before, open := strings.CutSuffix(rest, "(")
	before, space := cutSpaceEnd(before)
	if !open || !space {
		return name
	}
	return before
}

// atLines calls read with the text from the start of each line on. What read
// takes, in bytes, is used up: the next start is behind it. It is the loop of a
// pattern that begins with ^ and may go beyond its line.
func atLines(text string, read func(rest string) int) {
	for {
		n := read(text)
		if n == 0 || text[n-1] != '\n' {
			n += endOfLine(text[n:]) + 1
		}
		if n > len(text) {
			return
		}
		text = text[n:]
	}
}

// cutSpaces takes exactly n spaces from the front.
func cutSpaces(s string, n int) (rest string, ok bool) {
	for range n {
		r, size := utf8.DecodeRuneInString(s)
		if size == 0 || !isSpace(r) {
			return s, false
		}
		s = s[size:]
	}
	return s, true
}
