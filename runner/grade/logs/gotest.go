package logs

import "strings"

var goWords = map[string]Status{"PASS": Passed, "FAIL": Failed, "SKIP": Skipped}

// gotest reads "--- PASS: TestX/sub (0.01s)".
func gotest(line string) (string, Status, bool) {
	rest, ok := strings.CutPrefix(line, "--- ")
	if !ok {
		return none()
	}
	word, rest, ok := strings.Cut(rest, ": ")
	s := goWords[word]
	if !ok || s == "" {
		return none()
	}
	name, ok := cutParenthesis(rest)
	return name, s, ok && name != ""
}

// cutParenthesis takes " (something)" from the end: from the last " (" that has
// a character in it.
func cutParenthesis(s string) (before string, ok bool) {
	inner, ok := strings.CutSuffix(s, ")")
	if !ok || inner == "" {
		return s, false
	}
	i := strings.LastIndex(inner[:len(inner)-1], " (")
	if i < 0 {
		return s, false
	}
	return s[:i], true
}

var cargoWords = map[string]Status{"ok": Passed, "FAILED": Failed}

// cargo reads "test path::name ... ok"; a name is one word.
func cargo(line string) (string, Status, bool) {
	if !strings.HasPrefix(line, "test") {
		return none()
	}
	word, rest := cutField(line)
	name, rest := cutField(rest)
	ellipsis, rest := cutField(rest)
	outcome, rest := cutField(rest)
	if word != "test" || ellipsis != "..." || rest != "" {
		return none()
	}
	s := cargoWords[outcome]
	return name, s, s != ""
}
