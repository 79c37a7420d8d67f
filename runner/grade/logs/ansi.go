package logs

import "strings"

// dropANSI takes away the escape sequences of a terminal (ECMA-48: an escape and
// a letter, or a control sequence). One that breaks off stays.
func dropANSI(s string) string {
	const escape = '\x1b'
	i := strings.IndexByte(s, escape)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i >= 0 {
		b.WriteString(s[:i])
		n := sequence(s[i+1:])
		if n == 0 {
			b.WriteByte(escape)
		}
		s = s[i+1+n:]
		i = strings.IndexByte(s, escape)
	}
	b.WriteString(s)
	return b.String()
}

// sequence is how long the escape sequence is whose escape is before s, or 0.
// None reaches over the end of a line.
func sequence(s string) int {
	if s == "" {
		return 0
	}
	if c := s[0]; c != '[' {
		if '@' <= c && c <= '_' {
			return 1
		}
		return 0
	}
	i := 1
	for i < len(s) && '0' <= s[i] && s[i] <= '?' {
		i++
	}
	for i < len(s) && ' ' <= s[i] && s[i] <= '/' {
		i++
	}
	if i < len(s) && '@' <= s[i] && s[i] <= '~' {
		return i + 1
	}
	return 0
}
