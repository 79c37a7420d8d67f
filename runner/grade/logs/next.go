package logs

import (
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
)

// next has two runners, as the version says.
func next(t *Tests, text string, of Subject) error {
	if of.Version == "1.27" {
		return nextCypress(t, text)
	}
	return nextKarma(t, text)
}

var nextSkipped = [...]string{"ERROR", "LOG", "WARN", "Check", "in"}

// nextKarma reads karma's mocha reporter, after the last start of the browser in
// each run. The headings of one run are above the tests of the next.
func nextKarma(t *Tests, text string) error {
	var above suites
	for run := range after(dropAssertions(dropANSI(text)), " xvfb-run ") {
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

func nextLine(t *Tests, above *suites, line string) error {
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

// dropAssertions takes away messages, from "AssertionError:" with a "#" after
// spaces to the next empty line.
func dropAssertions(text string) string {
	const head, end = "AssertionError:", "\n\n"
	var b strings.Builder
	last := strings.LastIndex(text, end)
	kept := 0
	for at := 0; ; {
		i := strings.Index(text[at:], head)
		if i < 0 {
			break
		}
		start := at + i
		at = start + len(head)
		rest := stripLeft(text[at:])
		if len(rest) == len(text)-at || !strings.HasPrefix(rest, "#") {
			continue
		}
		message := len(text) - len(rest) + len("#")
		if message > last {
			break
		}
		b.WriteString(text[kept:start])
		at = message + strings.Index(text[message:], end) + len(end)
		kept = at
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

var nextSuite = lazyregexp.New(`Running:.*\)\n{3}` + anySpace + `{2}(.*)\n`)

// nextCypress reads Cypress's specs, the failures of each before its passes. No
// heading but the first counts.
func nextCypress(t *Tests, text string) error {
	at := nextSuite.FindStringSubmatchIndex(text)
	for at != nil {
		suite := text[at[2]:at[3]]
		text = text[at[1]:]
		spec := text
		if at = nextSuite.FindStringSubmatchIndex(text); at != nil {
			spec = text[:at[0]]
		}
		for _, read := range [...]func(string) (string, Status, int){nextFailure, nextPass} {
			var err error
			atLines(spec, func(rest string) int {
				name, s, n := read(rest)
				if n > 0 && err == nil {
					err = t.join(s, ": ", suite, strip(name))
				}
				return n
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// nextFailure reads "    1) name" from the start of a line; any of the spaces
// may be the end of one. n is how much that is, or 0.
func nextFailure(rest string) (name string, s Status, n int) {
	after, ok := cutSpaces(rest, 4)
	if !ok {
		return "", "", 0
	}
	if after, ok = cutNumber(after); !ok {
		return "", "", 0
	}
	if after, ok = cutSpace(after); !ok {
		return "", "", 0
	}
	end := endOfLine(after)
	return after[:end], Failed, len(rest) - len(after) + end
}

// nextPass reads "    ✓ name (12ms)", up to the last parenthesis.
func nextPass(rest string) (name string, s Status, n int) {
	after, ok := cutSpaces(rest, 4)
	if !ok || !strings.HasPrefix(after, "✓") {
		return "", "", 0
	}
	if after, ok = cutSpace(after[utf8.RuneLen('✓'):]); !ok {
		return "", "", 0
	}
	end := strings.LastIndexByte(after[:endOfLine(after)], '(')
	if end < 0 {
		return "", "", 0
	}
	return after[:end], Passed, len(rest) - len(after) + end + 1
}
