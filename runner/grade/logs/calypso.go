package logs

import (
	"errors"
	"strings"
)

// What Python says with an AttributeError: a pattern that had to match did not.
var (
	errMark = errors.New("a line with a mark lacks a space before or after it")
	errTime = errors.New("a line with a mark has a time, but not at its end")
)

// calypsoCommand stands in the trace before each run of jest.
const calypsoCommand = " ./node_modules/.bin/jest "

// calypso reads jest's verbose output of each run of its command. The headings
// of one run are above the tests of the next.
func calypso(t *Tests, text string, _ Subject) error {
	var above suites
	for run := range after(text, calypsoCommand) {
		if err := calypsoRun(t, &above, run); err != nil {
			return err
		}
	}
	return nil
}

func calypsoRun(t *Tests, above *suites, run string) error {
	for line := range lines(run) {
		if strings.HasPrefix(line, "Test Suites") || strings.HasPrefix(line, "  ● ") {
			return nil
		}
		marked := stripLeft(line)
		s := calypsoStatus(marked)
		if s == "" {
			above.add(line)
			continue
		}
		name, _ := cutMark(marked, jestMarks)
		if _, space := cutSpace(marked[len("✓"):]); !space || len(marked) == len(line) {
			return errMark
		}
		if hasMilliseconds(line) {
			var ok bool
			if name, ok = cutMillisecondsEnd(name); !ok {
				return errTime
			}
		}
		if err := setCalypso(t, s, above, name); err != nil {
			return err
		}
	}
	return nil
}

func calypsoStatus(line string) Status {
	switch {
	case strings.HasPrefix(line, "✓"):
		return Passed
	case strings.HasPrefix(line, "✕"):
		return Failed
	}
	return ""
}

// setCalypso puts a dash before a test without headings too.
func setCalypso(t *Tests, s Status, above *suites, name string) error {
	parts := above.with(name)
	if len(above.names) == 0 {
		parts = []string{"", name}
	}
	full, err := t.build(dash, parts)
	if err != nil {
		return err
	}
	return t.setBuilt(strip(full), s)
}
