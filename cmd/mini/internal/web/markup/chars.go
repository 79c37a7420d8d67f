package markup

import (
	"unicode"
	"unicode/utf8"
)

// maxMarks is the number of combining marks on a character. It is larger than that of the
// terminal, since browsers draw the marks of pointed Hebrew and of Indic scripts well.
const maxMarks = 4

// charFilter decides which characters are shown as they are.
type charFilter struct {
	last       rune // 0 at the start of a line and after a sign
	marks      int  // on the last character
	isSelected bool // a variation selector follows the last character
}

// isVisible reports whether a character that is not ASCII is shown as it is; rest is the text
// after it.
func (f *charFilter) isVisible(r rune, rest string) bool {
	switch {
	case r == joiner || r == nonJoiner:
		// Persian, Indic scripts and emoji need single joiners. Elsewhere they hide text.
		next, _ := utf8.DecodeRuneInString(rest)
		if isJoined(f.last) && isJoined(next) {
			*f = charFilter{last: r}
			return true
		}
	case r == '\ufe0e' || r == '\ufe0f':
		// A choice between text and emoji, once for each character.
		if f.last != 0 && f.last != joiner && f.marks == 0 && !f.isSelected {
			f.isSelected = true
			return true
		}
	case unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
	case unicode.Is(unicode.Zs, r):
		*f = charFilter{last: r}
		return true
	case !unicode.IsPrint(r):
	case unicode.Is(unicode.M, r):
		if f.marks++; f.last != 0 && f.marks <= maxMarks {
			return true
		}
		return false // further marks on the same character are not shown either
	default:
		*f = charFilter{last: r}
		return true
	}
	*f = charFilter{}
	return false
}

const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// isJoined reports whether single joiners are ordinary beside a character: it is an emoji or
// belongs to Arabic, Syriac, Indic or Mongolian script.
func isJoined(r rune) bool {
	return r >= 0x600 && r < 0x1b00 && unicode.In(r, unicode.L, unicode.M) || r > 0x2000 && unicode.In(r, unicode.So, unicode.Sk)
}

// signOf returns the sign of a character that cannot be seen.
func signOf(r rune) rune {
	switch {
	case r < ' ':
		return 0x2400 + r // the control pictures
	case r == 0x7f:
		return 0x2421
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return 0x2424 // new line
	}
	return unicode.ReplacementChar
}
