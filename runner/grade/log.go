package grade

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/minibench/mini/runner/grade/logs"
)

// Markers that evaluation scripts and the harness print to a log.
const (
	StartMarker = ">>>>> Start Test Output"
	EndMarker   = ">>>>> End Test Output"
	ExitMarker  = ">>>>> Test Exit Code:"
)

// failureMarkers are the markers that older harnesses print to logs without a
// verdict. A log that contains one anywhere is invalid, even if a test printed it.
var failureMarkers = []string{
	">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out",
}

// Log holds the test results and the exit code found in a log.
type Log struct {
	// HasResults reports whether the log has usable results. If not, Tests is empty.
	HasResults bool
	Tests      *logs.Tests
	// ExitCode is the first exit code in the log; nil if there is none. A test can
	// print a wrong one.
	ExitCode *int64
	// Contradicted holds the tests of a log with a non-zero exit code but no
	// failed test; otherwise it is nil. The verdict does not use these results,
	// and HasResults is false.
	Contradicted *logs.Tests
}

// ReadLog finds the tests in a log. The text must have universal newlines (see
// logs.Decode). ReadLog returns an error if the parser is unknown or crashes; there
// is no verdict then.
func ReadLog(text, parser string, info logs.InstanceInfo) (Log, error) {
	return readLog(text, parser, func(text string) (*logs.Tests, error) { return logs.Parse(parser, text, info) })
}

// readLog finds the tests in a log. It calls parse instead of the parser itself.
func readLog(text, parser string, parse func(text string) (*logs.Tests, error)) (Log, error) {
	if !logs.IsKnown(parser) { // an error even if the log is unusable
		return Log{}, fmt.Errorf("%w: %.100q", logs.ErrUnknownParser, parser)
	}
	unusable := Log{Tests: &logs.Tests{}, ExitCode: exitCode(text)}
	for _, marker := range failureMarkers {
		if strings.Contains(text, marker) {
			return unusable, nil
		}
	}
	if !strings.Contains(text, StartMarker) || !strings.Contains(text, EndMarker) {
		return unusable, nil
	}
	tests, err := parse(testOutput(text))
	if err == nil && !tests.Any() {
		// The buffered output of a test runner can follow the end marker.
		tests, err = parse(text)
	}
	switch {
	case err != nil:
		return Log{}, err // parse has added the context
	case !tests.Any() && !suiteRan(text):
		return unusable, nil
	case tests.Any() && unusable.ExitCode != nil && *unusable.ExitCode != 0 && !tests.AnyFailed():
		unusable.Contradicted = tests // the script failed although no test did
		return unusable, nil
	}
	return Log{HasResults: true, Tests: tests, ExitCode: unusable.ExitCode}, nil
}

// testOutput returns the text after the first start marker, up to the next
// start or end marker. The text has a start marker.
func testOutput(text string) string {
	_, rest, _ := strings.Cut(text, StartMarker)
	rest, _, _ = strings.Cut(rest, StartMarker)
	rest, _, _ = strings.Cut(rest, EndMarker)
	return rest
}

// suiteRanPattern matches the summary lines of test runners that list only failed
// tests, or no tests at all.
var suiteRanPattern = logs.PythonPattern(`(?m)Executed [1-9]\d* of \d|` +
	`TOTAL: [1-9]\d* (?:SUCCESS|FAILED)|` +
	`[1-9]\d* passing|` +
	`Tests:\s+[1-9]|` +
	`Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total|` +
	`^# tests [1-9]|` +
	`[1-9]\d* specs?, \d+ failures?|` +
	`': ok$`)

func suiteRan(text string) bool { return suiteRanPattern.MatchString(text) }

var exitPattern = logs.PythonPattern(ExitMarker + `\s*(-?\d+)`)

// exitCode returns the first number after an exit marker, or nil. As in Python, the
// digits may be of any script. It clamps a number that does not fit an int64.
func exitCode(text string) *int64 {
	m := exitPattern.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, _ := strconv.ParseInt(strings.Map(asciiDigit, m[1]), 10, 64) // an out-of-range number is clamped
	return &n
}

// asciiDigit converts a digit of any script to ASCII. It relies on Unicode, where
// the digits of a script are ten consecutive code points.
func asciiDigit(r rune) rune {
	if !unicode.IsDigit(r) {
		return r
	}
	n := rune(0)
	for unicode.IsDigit(r - 1 - n) {
		n++
	}
	return '0' + n%10
}
