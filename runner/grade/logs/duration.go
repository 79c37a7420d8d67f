package logs

import "strings"

// cutDuration takes " (12 ms)" or " (3s)" from the end of a name. The name keeps
// one character at least.
func cutDuration(name string) string {
	inner, ok := strings.CutSuffix(name, ")")
	if !ok {
		return name
	}
	open := strings.LastIndexByte(inner, '(')
	if open < 0 {
		return name
	}
	rest, ok := cutDigits(inner[open+1:])
	if unit := stripLeft(rest); !ok || unit != "ms" && unit != "s" {
		return name
	}
	before, ok := cutSpaceEnd(name[:open])
	if !ok || before == "" {
		return name
	}
	return before
}

// A timing says whether s begins with one, from behind its parenthesis, as in
// "12ms) and more".
type timing func(s string) bool

// cutTiming cuts a name at the last timing: a space, a parenthesis, and what
// timed asks for. More may follow.
func cutTiming(s string, timed timing) (name string, ok bool) {
	for head := s; ; {
		open := strings.LastIndexByte(head, '(')
		if open < 0 {
			return s, false
		}
		head = head[:open]
		if before, space := cutSpaceEnd(head); space && timed(s[open+1:]) {
			return before, true
		}
	}
}

// dropTimings takes away every "(12ms)".
func dropTimings(s string) string {
	if !strings.Contains(s, "ms)") {
		return s
	}
	var b strings.Builder
	for {
		open := strings.IndexByte(s, '(')
		if open < 0 {
			break
		}
		b.WriteString(s[:open])
		s = s[open:]
		if rest, ok := cutMilliseconds(s); ok {
			s = rest
			continue
		}
		b.WriteByte('(')
		s = s[1:]
	}
	b.WriteString(s)
	return b.String()
}

// cutMilliseconds takes "(12ms)" from the front.
func cutMilliseconds(s string) (rest string, ok bool) {
	inner, ok := strings.CutPrefix(s, "(")
	if !ok {
		return s, false
	}
	inner, ok = cutDigits(inner)
	if !ok {
		return s, false
	}
	return strings.CutPrefix(inner, "ms)")
}

// hasMilliseconds says whether "(12ms)" is anywhere in s.
func hasMilliseconds(s string) bool {
	for {
		open := strings.IndexByte(s, '(')
		if open < 0 {
			return false
		}
		if _, ok := cutMilliseconds(s[open:]); ok {
			return true
		}
		s = s[open+1:]
	}
}

// cutMillisecondsEnd takes "(12ms)" from the end.
func cutMillisecondsEnd(s string) (rest string, ok bool) {
	inner, ok := strings.CutSuffix(s, "ms)")
	if !ok {
		return s, false
	}
	inner, ok = cutDigitsEnd(inner)
	if !ok {
		return s, false
	}
	return strings.CutSuffix(inner, "(")
}
