package logs

import (
	"errors"
	"strings"
	"unicode/utf8"
)

var errNoSuite = errors.New("a suite ends that has not begun")

var karmaMarks = map[rune]Status{'✔': Passed, '✖': Failed}

// karma reads its mocha reporter, from the start of the browser to the summary:
// marks with names, below suites by their indent.
func karma(t *Tests, text string, _ Subject) error {
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
	rest := stripLeft(line)
	if name, s := cutMark(rest, karmaMarks); s != "" {
		return k.tests.join(s, " > ", append(k.suites[:len(k.suites):len(k.suites)], name)...)
	}
	// The last space of the indent counts as the one before the name.
	in := utf8.RuneCountInString(line[:len(line)-len(rest)]) - 1
	if in <= 0 {
		return nil
	}
	switch {
	case in > k.indent:
		k.suites = append(k.suites, rest)
	case in < k.indent:
		if len(k.suites) == 0 {
			return errNoSuite
		}
		k.suites = k.suites[:len(k.suites)-1]
	}
	k.indent = in
	return nil
}
