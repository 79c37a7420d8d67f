package logs

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

var (
	jestLine = PythonPattern(`^(✓|✕|○)\s(.+?)(?:\s\((\d+\s*m?s)\))?$`)
	jestJSON = parserFor(`^\[(PASSED|FAILED)\]\s(.+)$`, 2, 1)
)

// jest parses a line of the verbose output, such as "✓ name (5 ms)".
func jest(line string) (string, Status, bool) {
	m := jestLine.FindStringSubmatch(line)
	if m == nil {
		return noTest()
	}
	return strip(m[2]), statusWords[m[1]], true
}

// immutableJS parses one of two formats. The pull request number selects the format.
func immutableJS(t *Tests, text string, info InstanceInfo) error {
	switch afterLast(info.InstanceID, "-") {
	case "2006":
		return perStripped(jest)(t, text, info)
	case "2005":
		return jestJSON(t, text, info)
	}
	return fmt.Errorf("unknown log format for instance %.100q", info.InstanceID)
}

var markedFailure = PythonPattern(`^\d+\)\s(.*)`)

// markedJS parses failures, which are lines such as "1) name". The output has no passes.
func markedJS(line string) (string, Status, bool) {
	m := markedFailure.FindStringSubmatch(line)
	if m == nil {
		return noTest()
	}
	return strip(m[1]), Failed, true
}

var carbonLine = PythonPattern(`^(PASS|FAIL)\s(?:(.*)\s\([\d.]+ms\)|(.*)\s\([\d.]+\ss\)|(.*)\s\([\d.]+s\)|(.*))`)

// carbon parses lines such as "PASS path/to/test.js (5.3 s)", which report files instead of
// tests. If the line has a time in one of three formats, the name ends before the time.
func carbon(line string) (string, Status, bool) {
	m := carbonLine.FindStringSubmatch(line)
	if m == nil {
		return noTest()
	}
	return strings.Join(m[2:], ""), statusWords[m[1]], true // at most one group is not empty
}

var (
	grommetFailure = PythonPattern(`(?m)^FAIL\s(.*)`)
	grommetPass    = PythonPattern(`(?m)^PASS\s(.*)`)
	grommetTiming  = PythonPattern(`\s\([\d.]+\s?(?:ms|s)\)$`)
)

// grommet parses the same lines as carbon. If a file has failures and passes, the pass
// counts. The white space after FAIL or PASS may be a newline; the name is then on the next
// line.
func grommet(t *Tests, text string, _ InstanceInfo) error {
	for name := range matchLineGroups(grommetFailure, text) {
		t.Set(grommetTiming.ReplaceAllString(strip(name), ""), Failed)
	}
	for name := range matchLineGroups(grommetPass, text) {
		t.Set(grommetTiming.ReplaceAllString(strip(name), ""), Passed)
	}
	return nil
}

// chromeFailure matches a failure. The name includes its trailing space, as it does in the
// datasets.
var chromeFailure = PythonPattern(`(?m)Chrome\s[\d.]+[^\S\r\n]\(.+?\)[^\S\r\n](.*)FAILED$`)

// chartJS parses failures. It ignores passes.
func chartJS(t *Tests, text string, _ InstanceInfo) error {
	for name := range matchGroups(chromeFailure, 1, dropANSI(text)) {
		t.Set(name, Failed)
	}
	return nil
}

var (
	phantomFailure  = PythonPattern(`2KPhantomJS\s[\d.]+\s\(Linux\s[\d.]+\)\s(.*)FAILED\n`)
	phantom64       = PythonPattern(`2KPhantomJS\s[\d.]+\s\(Linux\sx86_64\)\s(.*)FAILED\n`)
	headless64      = PythonPattern(`Chrome\sHeadless\s.*\s\(Linux\sx86_64\)\s(.*)FAILED\n`)
	headlessFailure = PythonPattern(`HeadlessChrome\s[\d.]+\s\(Linux\s[\d.]+\)\s(.*)FAILED\n`)
)

// bpmnJS parses failures. It ignores passes.
func bpmnJS(t *Tests, text string, _ InstanceInfo) error {
	for _, failure := range [...]*lazyregexp.Regexp{phantomFailure, phantom64, headless64, headlessFailure} {
		for name := range matchGroups(failure, 1, text) {
			t.Set(name, Failed)
		}
	}
	return nil
}

var (
	openLayersHeadless = PythonPattern(`Chrome\sHeadless\s[\d.]+\s\(Linux\s\S+\)\s(.*)\sFAILED\n`)
	openLayersChrome   = PythonPattern(`Chrome\s[\d.]+\s\(Linux\s\S+\)\s(.*)FAILED\n`)
	openLayersMocha    = PythonPattern(`(?m)^\s{2}\d+\)((?s:.*?))Error:`)
	openLayersCase     = PythonPattern(`(?m)^case\s(.*):\smismatch`)
)

// openLayers parses the failures of browsers, of mocha and of image comparisons. It ignores
// passes.
func openLayers(t *Tests, text string, _ InstanceInfo) error {
	for _, names := range [...]iter.Seq[string]{
		matchGroups(openLayersHeadless, 1, text), matchGroups(openLayersChrome, 1, text),
		matchLineGroups(openLayersMocha, text), matchLineGroups(openLayersCase, text),
	} {
		for name := range names {
			t.Set(collapse(name), Failed)
		}
	}
	return nil
}

var eslintFailure = PythonPattern(`\s{2}\d+\)((?s:.*?))\s+.*Error`)

// eslint parses mocha's list of failures, such as "  1) suite name: Error ...". The name
// ends at the first white space that is followed by "Error" on the same line.
func eslint(t *Tests, text string, _ InstanceInfo) error {
	for name := range matchGroups(eslintFailure, 1, text) {
		t.Set(collapse(name), Failed)
	}
	return nil
}

var (
	mochaSummary = PythonPattern(`\n[ \t]*\d+ passing`)
	mochaNumber  = PythonPattern(`^\d+\)`)
	mochaTime    = PythonPattern(`\(\d+ms\)`)
)

// highlightJS parses the lines with mocha's marks before its summary. The name of a test
// includes only the nearest heading.
func highlightJS(t *Tests, text string, _ InstanceInfo) error {
	var above []string
	for line := range lines(beforeMatch(text, mochaSummary)) {
		name, s := strip(line), Passed
		switch {
		case strings.HasPrefix(name, "✓"), strings.HasPrefix(name, "✔"):
			name = name[len("✓"):]
		case mochaNumber.MatchString(name):
			_, name, _ = strings.Cut(name, ")")
			s = Failed
		case strings.HasPrefix(line, "  "):
			above = []string{name}
			continue
		default:
			continue
		}
		name = strip(mochaTime.ReplaceAllString(name, ""))
		if err := t.join(s, ".", append(above[:len(above):len(above)], name)...); err != nil {
			return err
		}
	}
	return nil
}

// headings is the stack of headings above a test. A heading is nested in the heading before
// it if its indent is larger.
type headings struct {
	names   []string
	indents []int
}

// add pushes a line as a heading, if it is indented.
func (h *headings) add(line string) {
	depth := indent(line)
	if depth == 0 {
		return
	}
	n := len(h.names)
	for n > 0 && h.indents[n-1] >= depth {
		n--
	}
	h.names = append(h.names[:n], strip(line))
	h.indents = append(h.indents[:n], depth)
}

// with returns the headings followed by the test.
func (h *headings) with(test string) []string {
	return append(h.names[:len(h.names):len(h.names)], test)
}

const dash = " - "

// errMark corresponds to an AttributeError in the official parser, which fails if its pattern
// does not match.
var errMark = errors.New("a line with a mark has no space around the mark, or has a time that is not at the end")

var (
	calypsoTest  = PythonPattern(`^\s+([✓✕])\s(.*)`)
	calypsoTimed = PythonPattern(`^\s+([✓✕])\s(.*)\(\d+ms\)$`)
)

// calypso parses jest's verbose output after each run of jest's command. As in the official
// parser, the headings of a run apply to the next run too.
func calypso(t *Tests, text string, _ InstanceInfo) error {
	var above headings
	for run := range partsAfter(text, " ./node_modules/.bin/jest ") {
		if err := calypsoRun(t, &above, run); err != nil {
			return err
		}
	}
	return nil
}

func calypsoRun(t *Tests, above *headings, run string) error {
	for line := range lines(run) {
		if strings.HasPrefix(line, "Test Suites") || strings.HasPrefix(line, "  ● ") {
			return nil
		}
		if marked := stripLeft(line); !strings.HasPrefix(marked, "✓") && !strings.HasPrefix(marked, "✕") {
			above.add(line)
			continue
		}
		test := calypsoTest
		if mochaTime.MatchString(line) {
			test = calypsoTimed
		}
		m := test.FindStringSubmatch(line)
		if m == nil {
			return errMark
		}
		parts := above.with(m[2])
		if len(above.names) == 0 {
			parts = []string{"", m[2]} // the name begins with a dash
		}
		name, err := t.build(dash, parts)
		if err == nil {
			err = t.setBuilt(strip(name), statusWords[m[1]])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
