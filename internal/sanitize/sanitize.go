// Package sanitize sanitizes untrusted text (replies, commands, outputs, file names) for the
// terminal: the result cannot move the cursor, query the terminal, change its state, or
// display different text than it contains.
//
//	sanitize.Line(name)         one line
//	sanitize.Text(reply)        several lines; control sequences become visible
//	sanitize.IsUnchanged(typed) whether Text shows all of a text
//	sanitize.Output(output)     command output as a terminal would show it: with colours,
//	                            and progress bars in their last state
//	sanitize.NewStream(emit)    the same for output that arrives in chunks
//
// Line and Text hide no text, since users base decisions on their results: the letters of a
// control sequence stay, and U+FFFD replaces its control characters. They drop only some signs
// without a column of their own: combining marks without a base or beyond maxMarks, variation
// selectors, skin tones and joiners of emoji. Output and Stream drop sequences, as a terminal does.
package sanitize

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Line sanitizes s and joins its lines.
func Line(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	filter := newCharFilter()
	for _, r := range s {
		if r == '\n' || r == '\t' || r == '\r' {
			r = ' '
		}
		if r, ok := filter.apply(r); ok {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Text sanitizes s. It keeps line ends (CRLF becomes LF) and expands tabs.
func Text(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	filter, column := newCharFilter(), 0
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		switch r {
		case '\n':
			b.WriteByte('\n')
			filter, column = newCharFilter(), 0
			continue
		case '\t':
			n := tabWidth - column%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			filter.apply(' ')
			column += n
			continue
		}
		if r, ok := filter.apply(r); ok {
			b.WriteRune(r)
			column += width(r)
		}
	}
	return b.String()
}

// tabWidth is the distance of tab stops.
const tabWidth = 8

// isPlainASCII reports whether s consists of printable ASCII only, the most common case.
func isPlainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// width returns the width of r in columns without grapheme clustering.
func width(r rune) int {
	if r < 0x7f {
		return 1
	}
	return ansi.StringWidthWc(string(r))
}

// isCombining reports whether r is drawn onto the preceding character: a mark, or a vowel or
// final consonant of a Hangul syllable, which only some terminals count as a column.
func isCombining(r rune) bool {
	return r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff || width(r) == 0
}

// charFilter decides for each character of a line whether and how to show it.
type charFilter struct {
	hasBase   bool // there is a character that marks can combine with
	marks     int  // number of marks on the base character
	selectors int  // number of variation selectors after the base
	isEmoji   bool // the base may be joined to another emoji
	isJoined  bool // a joiner follows the base
}

func newCharFilter() charFilter { return charFilter{} }

// maxMarks is the maximum number of marks on a character: scripts need no more, and more marks
// would overlap other lines.
const maxMarks = 2

// apply returns the character to show for r; false drops it.
func (s *charFilter) apply(r rune) (rune, bool) {
	if r >= ' ' && r < 0x7f {
		*s = charFilter{hasBase: true}
		return r, true
	}
	switch {
	case unicode.Is(unicode.Variation_Selector, r):
		// Terminals disagree on the width after a variation selector. Several in a row are a
		// way to smuggle text.
		s.selectors++
		return unicode.ReplacementChar, s.selectors > 1
	case r >= 0x1f3fb && r <= 0x1f3ff: // skin tones of the preceding emoji
		return r, false
	case r == joiner && s.isEmoji && !s.isJoined:
		// Terminals disagree on the width of joined emoji; without the joiner all agree.
		s.isJoined = true
		return r, false
	case r == 0x3000:
		// The ideographic space, two columns wide.
	case unicode.Is(unicode.Zs, r):
		r = ' '
	case !unicode.IsPrint(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		r = unicode.ReplacementChar
	case unicode.Is(unicode.M, r), isCombining(r):
		s.marks++
		return r, s.hasBase && s.marks <= maxMarks
	}
	*s = charFilter{hasBase: true, isEmoji: unicode.Is(unicode.So, r)}
	return r, true
}

const joiner = '\u200d'

// IsUnchanged reports whether Text shows all of s: no character is replaced, and only
// variation selectors, skin tones and joiners are dropped.
func IsUnchanged(s string) bool {
	return strings.Map(func(r rune) rune {
		if r == joiner || r >= 0x1f3fb && r <= 0x1f3ff || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, s) == Text(s)
}
