package logs

import (
	"strings"
	"unicode/utf8"
)

// phpunit reads PHPUnit's testdox: a suite, "Name (Namespace\Name)", and below
// it a mark and a name for each test. Other lines may look like a suite, "OK (3
// tests, 3 assertions)"; a test before any suite belongs to "None".
func phpunit(t *Tests, text string, _ Subject) error {
	suite := "None"
	for line := range lines(text) {
		if name, ok := phpSuite(line); ok {
			suite = name
			continue
		}
		line = stripLeft(line)
		mark, size := utf8.DecodeRuneInString(line)
		s := phpMarks[mark]
		if s == "" {
			continue
		}
		if err := t.join(s, " > ", suite, stripLeft(line[size:])); err != nil {
			return err
		}
	}
	return nil
}

var phpMarks = map[rune]Status{'✔': Passed, '✘': Failed, '↩': Skipped}

// phpSuite reads a line that begins with a letter or a number and ends in
// parentheses.
func phpSuite(line string) (string, bool) {
	if !strings.HasSuffix(line, ")") {
		return "", false
	}
	name, ok := cutParenthesis(line)
	if !ok || !runeCountAtLeast(name, 2) {
		return "", false
	}
	for _, first := range name {
		return name, isWord(first)
	}
	return "", false
}
