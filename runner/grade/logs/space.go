package logs

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The official parsers are written in Python, and what they call a space, a
// digit or a letter is Unicode's, and Python's. This file has those words; no
// parser here uses the ones of package strings in their place.

// isSpace says what str.isspace and \s hold for a space. The four separators
// from U+001C on are Python's own.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r' || 0x1c <= r && r <= 0x1f
	}
	return unicode.IsSpace(r)
}

// isDigit is \d.
func isDigit(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9'
	}
	return unicode.Is(unicode.Nd, r)
}

// isWord is \w: letters and numbers of any kind, but no marks.
func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

// lines splits at \n alone. A text has one line more than it has \n.
func lines(text string) iter.Seq[string] { return strings.SplitSeq(text, "\n") }

// graphic says that s neither begins nor ends with what could be a space.
func graphic(s string) bool {
	return s != "" && ' ' < s[0] && s[0] < utf8.RuneSelf && ' ' < s[len(s)-1] && s[len(s)-1] < utf8.RuneSelf
}

// strip is str.strip.
func strip(s string) string {
	if graphic(s) {
		return s
	}
	return strings.TrimFunc(s, isSpace)
}

func stripLeft(s string) string  { return strings.TrimLeftFunc(s, isSpace) }
func stripRight(s string) string { return strings.TrimRightFunc(s, isSpace) }

// indent is how many characters of space a line begins with.
func indent(line string) int {
	return utf8.RuneCountInString(line[:len(line)-len(stripLeft(line))])
}

// cutField takes the first word of s: str.split, one at a time. The word is
// empty where there is none.
func cutField(s string) (field, rest string) {
	s = stripLeft(s)
	end := strings.IndexFunc(s, isSpace)
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// cutLastField takes the last word of s.
func cutLastField(s string) (rest, field string) {
	s = stripRight(s)
	start := strings.LastIndexFunc(s, isSpace)
	if start < 0 {
		return "", s
	}
	_, size := utf8.DecodeRuneInString(s[start:])
	return s[:start], s[start+size:]
}

// collapse makes every run of spaces one, and none at the ends.
func collapse(s string) string {
	s = strip(s)
	if !strings.Contains(s, "  ") && strings.IndexFunc(s, func(r rune) bool { return r != ' ' && isSpace(r) }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for field, rest := cutField(s); field != ""; field, rest = cutField(rest) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(field)
	}
	return b.String()
}

// cutSpace takes one space of any kind from the front; many patterns ask for
// exactly one.
func cutSpace(s string) (rest string, ok bool) {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 || !isSpace(r) {
		return s, false
	}
	return s[size:], true
}

// cutSpaceEnd takes one space from the end.
func cutSpaceEnd(s string) (rest string, ok bool) {
	r, size := utf8.DecodeLastRuneInString(s)
	if size == 0 || !isSpace(r) {
		return s, false
	}
	return s[:len(s)-size], true
}

// cutDigits takes digits, one at least, from the front.
func cutDigits(s string) (rest string, ok bool) {
	rest = strings.TrimLeftFunc(s, isDigit)
	return rest, len(rest) < len(s)
}

// cutDigitsEnd takes digits, one at least, from the end.
func cutDigitsEnd(s string) (rest string, ok bool) {
	rest = strings.TrimRightFunc(s, isDigit)
	return rest, len(rest) < len(s)
}

// cutNumber takes digits and a closing parenthesis, "12)", from the front.
func cutNumber(s string) (rest string, ok bool) {
	rest, ok = cutDigits(s)
	if !ok {
		return s, false
	}
	return strings.CutPrefix(rest, ")")
}

// runeCountAtLeast says whether s has n characters or more, without counting
// all of them.
func runeCountAtLeast(s string, n int) bool {
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return false
		}
		s = s[size:]
	}
	return true
}
