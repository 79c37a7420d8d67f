package logs

import (
	"iter"
	"strings"
)

// next parses one of two formats. The version selects the format.
func next(t *Tests, text string, info InstanceInfo) error {
	if info.Version == "1.27" {
		return nextCypress(t, text)
	}
	return nextKarma(t, text)
}

var nextSkipped = [...]string{"ERROR", "LOG", "WARN", "Check", "in"}

// nextKarma parses the output of karma's mocha reporter after the last browser start in each
// run. As in the official parser, the headings of a run apply to the next run too.
func nextKarma(t *Tests, text string) error {
	var above headings
	for run := range partsAfter(nextAssertion.ReplaceAllString(dropANSI(text), ""), " xvfb-run ") {
		for line := range lines(afterLast(run, "Starting browser Chrome")) {
			if strings.HasPrefix(line, "TOTAL") {
				break
			}
			if err := nextLine(t, &above, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func nextLine(t *Tests, above *headings, line string) error {
	stripped := stripLeft(line)
	for _, word := range nextSkipped {
		if strings.HasPrefix(stripped, word) {
			return nil
		}
	}
	s := Failed
	_, name, ok := strings.Cut(line, "✗")
	if !ok {
		s = Passed
		_, name, ok = strings.Cut(line, "✓")
	}
	if !ok {
		above.add(line)
		return nil
	}
	return t.join(s, dash, above.with(stripLeft(name))...)
}

// nextAssertion matches an assertion message up to an empty line.
var nextAssertion = PythonPattern(`AssertionError:\s+#(?s:.*?)\n\n`)

var (
	nextSuite   = PythonPattern(`Running:.*\)\n{3}\s{2}(.*)\n`)
	nextFailure = PythonPattern(`(?m)^\s{4}\d+\)\s(.*)`)
	nextPass    = PythonPattern(`(?m)^\s{4}✓\s(.*)\(`)
)

// nextCypress parses the failures and then the passes of each Cypress spec. Only the first
// heading of a spec is part of test names.
func nextCypress(t *Tests, text string) error {
	for loc := nextSuite.FindStringSubmatchIndex(text); loc != nil; loc = nextSuite.FindStringSubmatchIndex(text) {
		suite := text[loc[2]:loc[3]]
		text = text[loc[1]:]
		spec := beforeMatch(text, nextSuite)
		for _, list := range [...]struct {
			names iter.Seq[string]
			s     Status
		}{{matchLineGroups(nextFailure, spec), Failed}, {matchLineGroups(nextPass, spec), Passed}} {
			for name := range list.names {
				if err := t.join(list.s, ": ", suite, strip(name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
