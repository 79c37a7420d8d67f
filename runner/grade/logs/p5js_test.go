package logs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
)

// withoutXMLSlowly is a simple implementation of withoutXML. It removes the leftmost element and
// then starts again.
func withoutXMLSlowly(text string) string {
	for at := 0; at < len(text); at++ {
		m := xmlTag.FindStringSubmatch(text[at:])
		if m == nil || m[1] != "" {
			continue
		}
		tag, end, n := m[0], "</"+m[2]+">", len(m[0])
		i := strings.Index(text[at+n:], end)
		if i < 0 {
			continue
		}
		i += at + n + len(end)
		again := strings.Repeat(tag, strings.Count(text[at:i], tag)-1)
		text = text[:at] + again + text[i:]
		at = -1
	}
	return text
}

// TestWithoutXML compares withoutXML with withoutXMLSlowly, on texts of tags and parts of tags.
func TestWithoutXML(t *testing.T) {
	parts := []string{"<a>", "</a>", "<b>", "</b>", "<ab>", "</ab>", "<é>", "</é>", "<", "</", "/", "a", "b", "é", ">", " ", "\n"}
	rng := rand.New(rand.NewPCG(1, 2))
	dropped := 0
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(24) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		text := b.String()
		want := withoutXMLSlowly(text)
		got, err := withoutXML(text)
		if err != nil || got != want {
			t.Fatalf("of %q is left %q, %v; want %q", text, got, err, want)
		}
		if got != text {
			dropped++
		}
	}
	if dropped < 1_000 {
		t.Errorf("only %d texts had an element", dropped)
	}
}

func TestWithoutXMLBoundsItsWork(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "<x%d>", i)
	}
	_, err := withoutXML(b.String())
	assert.ErrorIs(t, err, errXML)
}

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
	assert.Equal(t, want, got, "spaces")
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
	assert.Equal(t, "a b cé", collapse(s), "collapsed")
	assert.Equal(t, 3, indent("\u00a0\t x"), "the indent")
}
