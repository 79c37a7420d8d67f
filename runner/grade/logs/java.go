package logs

import (
	"strings"
	"unicode/utf8"
)

// maven reads the trace of the script's commands, one for each test, and the
// results of the builds, which come in the same order but may come late or even
// early.
func maven(t *Tests, text string, _ Subject) error {
	var tests []string   // without a result
	var results []Status // without a test
	for line := range lines(text) {
		if !strings.Contains(line, "-Dtest=") && !strings.Contains(line, "BUILD ") {
			continue
		}
		line = strip(line)
		if name := mavenTest(line); name != "" {
			tests = append(tests, name)
		}
		var s Status
		switch {
		case strings.HasSuffix(line, "BUILD SUCCESS"):
			s = Passed
		case strings.HasSuffix(line, "BUILD FAILURE"):
			s = Failed
		default:
			continue
		}
		if len(tests) == 0 {
			results = append(results, s)
			continue
		}
		t.Set(tests[0], s)
		tests = tests[1:]
	}
	for i := range min(len(tests), len(results)) {
		t.Set(tests[i], results[i])
	}
	return nil
}

// mavenTest is the name after the last -Dtest= of a line that has one.
func mavenTest(line string) string {
	const option = "-Dtest="
	for head := line; ; {
		i := strings.LastIndex(head, option)
		if i < 0 {
			return ""
		}
		after := line[i+len(option):]
		if r, _ := utf8.DecodeRuneInString(after); after != "" && !isSpace(r) {
			name, _ := cutField(after)
			return name
		}
		head = line[:i]
	}
}

var antWords = map[string]Status{"[PASS": Passed, "[FAIL": Failed, "[ERR": Failed}

// ant reads "[junit] [PASS] name".
func ant(line string) (string, Status, bool) {
	rest, ok := strings.CutPrefix(line, "[junit]")
	if !ok {
		return none()
	}
	result := stripLeft(rest)
	word, rest, ok := strings.Cut(result, "]")
	s := antWords[word]
	after, space := cutSpace(rest)
	return stripLeft(after), s, ok && s != "" && space && len(result) < len(line)-len("[junit]")
}

// gradle reads what a listener prints that the images add to the build: "Class >
// test PASSED". Output of other processes may push the result to a later line.
func gradle(t *Tests, text string, _ Subject) error {
	pending := ""
	for line := range lines(text) {
		line = strip(line)
		s := Status("")
		switch {
		case strings.HasSuffix(line, string(Passed)):
			s = Passed
		case strings.HasSuffix(line, string(Failed)):
			s = Failed
		}
		switch name, ok := gradleResult(line, s); {
		case ok:
			t.Set(name, s)
			pending = ""
		case isGradleTest(line):
			pending = line
		case s != "" && line == string(s) && pending != "":
			t.Set(pending, s)
			pending = ""
		}
	}
	return nil
}

// gradleResult is the name of a line that ends with a status: all but the
// status and one space.
func gradleResult(line string, s Status) (string, bool) {
	if s == "" {
		return "", false
	}
	name, ok := cutSpaceEnd(strings.TrimSuffix(line, string(s)))
	return name, ok && runeCountAtLeast(name, 2) && !strings.HasPrefix(name, ">")
}

// isGradleTest finds "Class > test", three words.
func isGradleTest(line string) bool {
	if !strings.Contains(line, ">") || strings.HasPrefix(line, ">") {
		return false
	}
	_, rest := cutField(line)
	arrow, rest := cutField(rest)
	test, rest := cutField(rest)
	return arrow == ">" && test != "" && rest == ""
}
