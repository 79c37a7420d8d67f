package skills

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
)

// named is what a skill may be called; two hyphens in a row are refused beside it.
var named = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// CheckName says why no skill can have a name; nil where one can.
func CheckName(name string) error {
	if bad := badName(name); bad != "" {
		return errors.New("the name of a skill " + strings.Replace(bad, "is not made", "is made", 1))
	}
	return nil
}

// badName says what is wrong with a name; "" is nothing.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxName:
		return "is longer than 64 characters"
	case !named.MatchString(name) || strings.Contains(name, "--"):
		return "is not made of small letters, digits and single hyphens between them"
	}
	return ""
}

// steers says that a character is none to be read: it would steer a terminal,
// turn text around, or hide in a prompt. Line ends and tabs are left to the
// caller. Two joiners stay, which scripts and pictures need.
func steers(r rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029', utf8.RuneError:
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}

// steering finds the first character of a text that steers, by its line, from 1.
func steering(text string) (line int, bad rune, found bool) {
	line = 1
	for _, r := range text {
		switch {
		case r == '\n':
			line++
		case r == '\t':
		case steers(r):
			return line, r, true
		}
	}
	return 0, 0, false
}

// oneLine is a text without line ends, and single spaces between its words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
