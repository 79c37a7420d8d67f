package logs

import "strings"

const mochaError = "Error:"

// openLayersMocha reads "  1) name ... Error:" from the start of a line, over as
// many lines as it takes. n is how much that is, or 0.
func openLayersMocha(rest string) (name string, n int) {
	s, ok := cutSpaces(rest, 2)
	if !ok {
		return "", 0
	}
	if s, ok = cutNumber(s); !ok {
		return "", 0
	}
	i := strings.Index(s, mochaError)
	if i < 0 {
		return "", 0
	}
	return s[:i], len(rest) - len(s) + i + len(mochaError)
}

// openLayersCase reads "case name: mismatch" from the start of a line. Either
// space may be the end of the line.
func openLayersCase(rest string) (name string, n int) {
	s, ok := strings.CutPrefix(rest, "case")
	if !ok {
		return "", 0
	}
	if s, ok = cutSpace(s); !ok {
		return "", 0
	}
	const end = "mismatch"
	eol := endOfLine(s)
	line := s[:eol]
	if strings.HasSuffix(line, ":") && strings.HasPrefix(s[eol:], "\n"+end) {
		return line[:eol-1], len(rest) - len(s) + eol + len("\n"+end)
	}
	for head := line; ; {
		i := strings.LastIndex(head, end)
		if i < 0 {
			return "", 0
		}
		head = line[:i]
		if before, space := cutSpaceEnd(head); space && strings.HasSuffix(before, ":") {
			return before[:len(before)-1], len(rest) - len(s) + i + len(end)
		}
	}
}

// throughLast is the text up to the last place where sep is, and sep. A search
// for sep from anywhere in it succeeds, and so does not run to the end in vain
// time and again.
func throughLast(text, sep string) string {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return ""
	}
	return text[:i+len(sep)]
}
