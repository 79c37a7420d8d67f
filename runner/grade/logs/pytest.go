package logs

import "strings"

// startsWithStatus reports whether a line begins with the letters of a status. This is also
// true for words such as "XFAILED" and "ERROR:".
func startsWithStatus(line string) bool {
	for _, s := range statuses {
		if strings.HasPrefix(line, string(s)) {
			return true
		}
	}
	return false
}

// pytest parses a line of the short summary, such as "PASSED tests/test_x.py::test_y - reason".
// The first word is the unmodified status, the second the name. A name with spaces is thus
// truncated.
func pytest(line string) (string, Status, bool) {
	word, id := summaryLine(line)
	return id, Status(word), id != "" && !isSkipCount(word, id)
}

// summaryLine returns the first two words of a line of the summary. It returns empty words for
// other lines.
func summaryLine(line string) (word, id string) {
	if !startsWithStatus(line) {
		return "", ""
	}
	if strings.HasPrefix(line, string(Failed)) {
		line = strings.ReplaceAll(line, " - ", " ")
	}
	word, rest := cutField(line)
	id, _ = cutField(rest)
	return word, id
}

var skipCount = PythonPattern(`^\[\d+\]$`)

// isSkipCount reports whether the words are from a line such as "SKIPPED [2] path:7: reason",
// which has a count instead of a test name.
func isSkipCount(word, id string) bool {
	return word == string(Skipped) && skipCount.MatchString(id)
}

// pytestOptions parses a line like pytest. If a test's parameter is an absolute path, which
// depends on the checkout, pytestOptions reduces the path to a slash and its last element.
func pytestOptions(line string) (string, Status, bool) {
	id, s, ok := pytest(line)
	if !ok {
		return noTest()
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

// mouseButtons replaces the names of enumeration members by their values. Newer Python versions
// print the names, older ones the values.
var mouseButtons = strings.NewReplacer("MouseButton.LEFT", "1", "MouseButton.RIGHT", "3")

func matplotlib(line string) (string, Status, bool) {
	word, id := summaryLine(line)
	if strings.Contains(line, "MouseButton") {
		word, id = mouseButtons.Replace(word), mouseButtons.Replace(id)
	}
	return id, Status(word), id != "" && !isSkipCount(word, id)
}

var pytestColour = PythonPattern(`\[\d+m`)

// pytestV2 parses lines of the short summary, and lines of the older format with the status at
// the end. Names keep their spaces. It first removes colors and control characters.
func pytestV2(line string) (string, Status, bool) {
	line = dropControls(pytestColour.ReplaceAllString(line, ""))
	switch {
	case startsWithStatus(line):
		if strings.HasPrefix(line, string(Failed)) {
			line, _, _ = strings.Cut(line, " - ")
		}
		word, rest := cutField(line)
		second, _ := cutField(rest)
		return collapse(rest), Status(word), second != "" && !isSkipCount(word, second)
	case endsWithStatus(line):
		rest, word := cutLastField(line)
		id := collapse(rest)
		return id, Status(word), id != ""
	}
	return noTest()
}

// dropControls removes U+0001 to U+001F, including tabs, but not U+0000.
func dropControls(line string) string {
	return strings.Map(func(r rune) rune {
		if 1 <= r && r < ' ' {
			return -1
		}
		return r
	}, line)
}

func endsWithStatus(line string) bool {
	for _, s := range statuses {
		if strings.HasSuffix(line, string(s)) {
			return true
		}
	}
	return false
}
