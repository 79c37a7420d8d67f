package skills

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
)

// namePattern matches valid names, except for double hyphens, which nameProblem
// rejects.
var namePattern = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// CheckName returns an error if a name is not a valid skill name.
func CheckName(name string) error {
	if problem := nameProblem(name); problem != "" {
		return errors.New("the name of a skill " + strings.Replace(problem, "does not consist", "must consist", 1))
	}
	return nil
}

// nameProblem returns what is wrong with a name; "" if it is valid.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxName:
		return "is longer than 64 characters"
	case !namePattern.MatchString(name) || strings.Contains(name, "--"):
		return "does not consist of lower-case letters, digits and single hyphens"
	}
	return ""
}

// isUnsafe reports whether a character could control a terminal, change the
// direction of text or hide in a prompt. Callers handle line breaks and tabs
// before. The two zero-width joiners are allowed, because some scripts and
// emoji need them.
func isUnsafe(r rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029', utf8.RuneError:
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}

// findUnsafe returns the first unsafe character of a text and its line, from 1.
func findUnsafe(text string) (line int, char rune, found bool) {
	line = 1
	for _, r := range text {
		switch {
		case r == '\n':
			line++
		case r == '\t':
		case isUnsafe(r):
			return line, r, true
		}
	}
	return 0, 0, false
}

// oneLine removes white space at both ends of text and replaces all other white
// space by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
