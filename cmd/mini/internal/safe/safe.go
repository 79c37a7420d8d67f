// Package safe makes text of others (models, commands, file names) fit for a
// terminal: nothing in it moves the cursor, asks the terminal, changes its
// state, or shows another text than the one that is there.
//
//	safe.Line(name)       one line, to stand within others
//	safe.Text(reply)      several lines, whatever would steer made visible
//	safe.Shown(typed)     whether Text shows a text as it is
//	safe.Colours(output)  output of a command as a terminal would leave it: with
//	                      its colours, progress bars in their last state
//	safe.NewStream(each)  the same for output that comes in pieces
//
// Line and Text hide nothing, since people decide by what they show: where a
// sequence was, its letters stay and U+FFFD stands for what made them one.
// Colours and Stream leave sequences out, as a terminal does.
package safe

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Line is s on one line.
func Line(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	signs := newSigns()
	for _, r := range s {
		if r == '\n' || r == '\t' || r == '\r' {
			r = ' '
		}
		if r, ok := signs.next(r); ok {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Text is s with its line ends, CRLF as LF, and tabs as spaces.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	signs, column := newSigns(), 0
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		switch r {
		case '\n':
			b.WriteByte('\n')
			signs, column = newSigns(), 0
			continue
		case '\t':
			n := tab - column%tab
			b.WriteString(strings.Repeat(" ", n))
			signs.next(' ')
			column += n
			continue
		}
		if r, ok := signs.next(r); ok {
			b.WriteRune(r)
			column += width(r)
		}
	}
	return b.String()
}

// tab is how far tab stops are apart.
const tab = 8

// plain says that every byte is a visible sign of ASCII, which is so of most
// texts.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// width in columns, as terminals count that were not asked to join signs.
func width(r rune) int {
	if r < 0x7f {
		return 1
	}
	return ansi.StringWidthWc(string(r))
}

// joins says that a character goes onto the sign before it: a mark, or a part of
// a Korean syllable, which only some terminals count as a column.
func joins(r rune) bool {
	return r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff || width(r) == 0
}

// signs goes through a line sign by sign and says what is shown of it.
type signs struct {
	begun    bool // a sign came that marks may go on
	marks    int  // on that sign
	variants int  // selectors after that sign
	emoji    bool // it may be joined to another one
	joined   bool // it is
}

func newSigns() signs { return signs{} }

// maxMarks are the marks that a sign may carry: scripts need no more, and more
// of them run into the lines above and below.
const maxMarks = 2

// next is what is shown for a character, if anything.
func (s *signs) next(r rune) (rune, bool) {
	if r >= ' ' && r < 0x7f {
		*s = signs{begun: true}
		return r, true
	}
	switch {
	case unicode.Is(unicode.Variation_Selector, r):
		// Terminals do not agree on what one does to the width. More than one
		// is no sign's: texts are smuggled that way.
		s.variants++
		return unicode.ReplacementChar, s.variants > 1
	case r >= 0x1f3fb && r <= 0x1f3ff: // colours of skin, on the sign before
		return r, false
	case r == joiner && s.emoji && !s.joined:
		// Some terminals show one sign for what it joins, others all of them, and
		// do not agree on the width either. Without it all show all.
		s.joined = true
		return r, false
	case r == 0x3000:
		// A space, two columns wide, of Chinese and Japanese texts.
	case unicode.Is(unicode.Zs, r):
		r = ' '
	case !unicode.IsPrint(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		r = unicode.ReplacementChar
	case unicode.Is(unicode.M, r), joins(r):
		s.marks++
		return r, s.begun && s.marks <= maxMarks
	}
	*s = signs{begun: true, emoji: unicode.Is(unicode.So, r)}
	return r, true
}

const joiner = '\u200d'

// Shown says that s is shown as it is: nothing of it is replaced, and nothing left
// out but what only changes how a sign looks, or joins it to the next. Such a text
// may be written where Line and Text show it, and keeps what they leave out.
func Shown(s string) bool {
	return strings.Map(func(r rune) rune {
		if r == joiner || r >= 0x1f3fb && r <= 0x1f3ff || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, s) == Text(s)
}
