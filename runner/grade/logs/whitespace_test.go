package logs

import (
	"slices"
	"testing"
)

// The results of Python for the characters below U+FFFF on which it and Go differ.
func TestPythonSpaces(t *testing.T) {
	space, other := PythonPattern(`^\s$`), PythonPattern(`^\S$`)
	var got []rune
	for r := range rune(0x10000) {
		if isSpace(r) {
			got = append(got, r)
		}
		if 0xd800 <= r && r <= 0xdfff {
			continue // surrogates are no characters
		}
		if is, not := space.MatchString(string(r)), other.MatchString(string(r)); is != isSpace(r) || not == is {
			t.Errorf("%U: the pattern says %t and %t", r, is, !not)
		}
	}
	want := []rune{
		'\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f, ' ', 0x85, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003,
		0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000,
	}
	if !slices.Equal(got, want) {
		t.Errorf("spaces are %U, want %U", got, want)
	}
}

func TestFields(t *testing.T) {
	const s = " \x1fa\u2003 b\x1c\x1dcé\u0085"
	var got []string
	for f, rest := cutField(s); f != ""; f, rest = cutField(rest) {
		got = append(got, f)
	}
	if want := []string{"a", "b", "cé"}; !slices.Equal(got, want) {
		t.Errorf("fields are %q, want %q", got, want)
	}
	if rest, last := cutLastField(s); last != "cé" || strip(rest) != "a\u2003 b" {
		t.Errorf("the last field is %q after %q", last, rest)
	}
	if got := collapse(s); got != "a b cé" {
		t.Errorf("collapsed it is %q", got)
	}
	if got := indent("\u00a0\t x"); got != 3 {
		t.Errorf("the indent is %d characters, want 3", got)
	}
}
