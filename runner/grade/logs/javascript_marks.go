package logs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cutMark takes a mark and one space from the front of a line, and says what
// the mark means.
func cutMark(line string, marks map[rune]Status) (rest string, s Status) {
	mark, size := utf8.DecodeRuneInString(line)
	rest, space := cutSpace(line[size:])
	if !space {
		return "", ""
	}
	return rest, marks[mark]
}

var jestMarks = map[rune]Status{'✓': Passed, '✕': Failed, '○': Skipped}

// jest reads "✓ name (5 ms)", of its verbose output.
func jest(line string) (string, Status, bool) {
	name, s := cutMark(line, jestMarks)
	return strip(cutDuration(name)), s, s != "" && name != ""
}

// jestJSON reads what a filter makes of jest's JSON, "[PASSED] name".
func jestJSON(line string) (string, Status, bool) {
	s := Passed
	rest, ok := strings.CutPrefix(line, "[PASSED]")
	if !ok {
		s = Failed
		rest, ok = strings.CutPrefix(line, "[FAILED]")
	}
	name, space := cutSpace(rest)
	return name, s, ok && space && name != ""
}

var vitestMarks = map[rune]Status{'✓': Passed, '×': Failed, '↓': Skipped}

// vitest reads "✓ file > suite > name 5ms", of its verbose output.
func vitest(line string) (string, Status, bool) {
	name, s := cutMark(line, vitestMarks)
	if s == "" || name == "" {
		return none()
	}
	return cutVitestEnd(name), s, true
}

// cutVitestEnd takes " 5ms", " 5 s", " 5" or " [skipped]" from the end of a
// name. The name keeps one character at least.
func cutVitestEnd(name string) string {
	before, skipped := strings.CutSuffix(name, "[skipped]")
	if !skipped {
		var ok bool
		before = stripRight(strings.TrimSuffix(strings.TrimSuffix(name, "s"), "m"))
		if before, ok = cutDigitsEnd(before); !ok {
			return name
		}
	}
	before, ok := cutSpaceEnd(before)
	if !ok || before == "" {
		return name
	}
	return before
}

// tap reads "ok 3 name"; directives are part of the name.
func tap(line string) (string, Status, bool) {
	s := Passed
	rest, ok := strings.CutPrefix(line, "ok ")
	if !ok {
		s = Failed
		rest, ok = strings.CutPrefix(line, "not ok ")
	}
	rest, number := cutDigits(rest)
	name, space := strings.CutPrefix(rest, " ")
	return name, s, ok && number && space && name != ""
}

// immutableJS has one form or the other, as the number of the pull request
// says.
func immutableJS(t *Tests, text string, of Subject) error {
	switch of.InstanceID[strings.LastIndexByte(of.InstanceID, '-')+1:] {
	case "2006":
		return perStripped(jest)(t, text, of)
	case "2005":
		return perStripped(jestJSON)(t, text, of)
	}
	return fmt.Errorf("no form is known for the instance id %.100q", of.InstanceID)
}

// marked reads "1) name", at the start of a line: failures alone.
func marked(line string) (string, Status, bool) {
	rest, ok := cutNumber(line)
	name, space := cutSpace(rest)
	return strip(name), Failed, ok && space
}
