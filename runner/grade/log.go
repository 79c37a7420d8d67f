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

// failureMarkers are printed by older harnesses to logs without a verdict. They
// invalidate a log anywhere, also if a test prints them.
var failureMarkers = []string{
	">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out",
}

// Log holds the test results and the exit code found in a log.
type Log struct {
	// Found reports that the log has usable results. If not, Tests is empty.
	Found bool
	Tests *logs.Tests
	// ExitCode is the first exit code in the log; nil if there is none. Tests
	// can print one too.
	ExitCode *int64
	// Contradicted holds the tests of a log with a non-zero exit code and no
	// failed test: the results are not used, and Found is false. Otherwise it
	// is nil.
	Contradicted *logs.Tests
}

// ReadLog finds the tests in a log. The text has universal newlines (see
// logs.Decode). An error means that there is no verdict: the parser is unknown
// or crashed.
func ReadLog(text, parser string, of logs.InstanceInfo) (Log, error) {
	return readLog(text, parser, func(text string) (*logs.Tests, error) { return logs.Parse(parser, text, of) })
}

// readLog is ReadLog with a function that calls the parser.
func readLog(text, parser string, parse func(text string) (*logs.Tests, error)) (Log, error) {
	if !logs.IsKnown(parser) { // an error even if the log is unusable
		return Log{}, fmt.Errorf("%w: %.100q", logs.ErrUnknownParser, parser)
	}
	none := Log{Tests: &logs.Tests{}, ExitCode: exitCode(text)}
	for _, s := range failureMarkers {
		if strings.Contains(text, s) {
			return none, nil
		}
	}
	if !strings.Contains(text, StartMarker) || !strings.Contains(text, EndMarker) {
		return none, nil
	}
	tests, err := parse(testOutput(text))
	if err == nil && !tests.Any() {
		// Buffered output of a test runner can follow the end marker.
		tests, err = parse(text)
	}
	switch {
	case err != nil:
		return Log{}, err // the error has enough context
	case !tests.Any() && !suiteRan(text):
		return none, nil
	case tests.Any() && none.ExitCode != nil && *none.ExitCode != 0 && !tests.AnyFailed():
		none.Contradicted = tests // the script failed, but no test: the results cannot be trusted
		return none, nil
	}
	return Log{Found: true, Tests: tests, ExitCode: none.ExitCode}, nil
}

// testOutput returns the text after the first start marker, up to the next
// start or end marker. The text has a start marker.
func testOutput(text string) string {
	_, rest, _ := strings.Cut(text, StartMarker)
	rest, _, _ = strings.Cut(rest, StartMarker)
	rest, _, _ = strings.Cut(rest, EndMarker)
	return rest
}

// suiteRanPattern matches the summary lines of test runners that list failed tests
// only, or no tests at all.
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

// exitCode returns the first number after an exit marker. As in Python, digits
// of any script count. A number that does not fit an int64 is clamped.
func exitCode(text string) *int64 {
	m := exitPattern.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, _ := strconv.ParseInt(strings.Map(asciiDigit, m[1]), 10, 64) // an out-of-range number is clamped
	return &n
}

// asciiDigit converts a digit of any script to ASCII. In Unicode the digits of
// a script are ten consecutive code points.
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
