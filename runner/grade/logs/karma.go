package logs

import (
	"errors"
	"strings"
	"unicode/utf8"
)

var errNoSuite = errors.New("a suite ends without a start")

var karmaLine = PythonPattern(`^(\s*)?([✔✖])?\s(.*)$`)

// karma parses the output of karma's mocha reporter from the start of the browser to the
// summary. A line with a mark is a test; other lines are suites, nested by indent.
func karma(t *Tests, text string, _ InstanceInfo) error {
	k := karmaLog{tests: t, indent: -1}
	started := false
	for line := range lines(text) {
		switch {
		case strings.HasPrefix(line, "SUMMARY:"):
			return nil
		case strings.Contains(line, "Starting browser"):
			started = true
		case started:
			if err := k.read(line); err != nil {
				return err
			}
		}
	}
	return nil
}

type karmaLog struct {
	tests  *Tests
	suites []string
	indent int
}

func (k *karmaLog) read(line string) error {
	m := karmaLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	depth, mark, name := utf8.RuneCountInString(m[1]), m[2], m[3]
	switch {
	case mark != "":
		return k.tests.join(statusWords[mark], " > ", append(k.suites[:len(k.suites):len(k.suites)], name)...)
	case depth > max(k.indent, 0):
		k.suites = append(k.suites, name)
	case depth == 0, depth == k.indent:
		return nil
	case len(k.suites) == 0:
		return errNoSuite
	default:
		k.suites = k.suites[:len(k.suites)-1]
	}
	k.indent = depth
	return nil
}
