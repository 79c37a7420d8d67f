package logs

import "strings"

// startsWithStatus says that a line may be of pytest's summary: it begins with
// the letters of a status, "XFAILED" and "ERROR:" too.
func startsWithStatus(line string) bool {
	for _, s := range statuses {
		if strings.HasPrefix(line, string(s)) {
			return true
		}
	}
	return false
}

// pytest reads the short summary, "PASSED tests/test_x.py::test_y[a b] - why".
// The word in front is the status as it stands there; the id ends at the first
// space.
func pytest(line string) (string, Status, bool) {
	word, id := summaryLine(line)
	return id, Status(word), id != "" && !isSkipCount(word, id)
}

// summaryLine is the first two words of a line of the summary, or nothing.
func summaryLine(line string) (word, id string) {
	if !startsWithStatus(line) {
		return "", ""
	}
	word, rest := cutField(line)
	if strings.HasPrefix(line, string(Failed)) {
		rest = skipDashes(rest)
	}
	id, _ = cutField(rest)
	return word, id
}

// skipDashes passes spaces, and " - " where it reads as one space. (The official
// parser makes it one in all of the line; what counts is where that leaves the
// second word.)
func skipDashes(s string) string {
	for s != "" {
		if rest, ok := strings.CutPrefix(s, " - "); ok {
			s = rest
			// What is left of the separator is a space, so that a word may begin
			// right here.
			continue
		}
		rest, ok := cutSpace(s)
		if !ok {
			return s
		}
		s = rest
	}
	return ""
}

// isSkipCount finds "SKIPPED [2] path:7: reason", which counts places and names
// no test.
func isSkipCount(word, id string) bool {
	if word != string(Skipped) {
		return false
	}
	count, opened := strings.CutPrefix(id, "[")
	count, closed := strings.CutSuffix(count, "]")
	rest, digits := cutDigits(count)
	return opened && closed && digits && rest == ""
}

// pytestOptions is pytest, with parameters that are absolute paths cut to their
// last part: where a checkout lies is no part of a test's name.
func pytestOptions(line string) (string, Status, bool) {
	id, s, ok := pytest(line)
	if !ok {
		return none()
	}
	open, end := strings.IndexByte(id, '['), strings.LastIndexByte(id, ']')
	if open < 0 || end < open {
		return id, s, true
	}
	option := id[open+1 : end]
	if strings.HasPrefix(option, "/") && !strings.HasPrefix(option, "//") && !strings.Contains(option, "*") {
		option = option[strings.LastIndexByte(option, '/'):]
	}
	return id[:open] + "[" + option + "]", s, true
}

// buttons are the two members of an enumeration that newer Pythons print by
// name and older ones by value.
var buttons = strings.NewReplacer("MouseButton.LEFT", "1", "MouseButton.RIGHT", "3")

func matplotlib(line string) (string, Status, bool) {
	word, id := summaryLine(line)
	if strings.Contains(line, "MouseButton") {
		word, id = buttons.Replace(word), buttons.Replace(id)
	}
	return id, Status(word), id != "" && !isSkipCount(word, id)
}
