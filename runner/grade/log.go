package grade

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/grade/logs"
)

// What evaluation scripts and the harness print to mark up a log.
const (
	StartMarker = ">>>>> Start Test Output"
	EndMarker   = ">>>>> End Test Output"
	ExitMarker  = ">>>>> Test Exit Code:"
)

// spoilers are what older harnesses wrote into logs that have no verdict. They
// spoil a log wherever they are, also where a test prints them.
var spoilers = []string{">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out"}

// Log is what the log of an evaluation says.
type Log struct {
	// Found says that the log can be held against the row. Else Tests is empty.
	Found bool
	Tests *logs.Tests
	// ExitCode is the first one that the log has, of the test script or of
	// whoever printed it; nil when there is none.
	ExitCode *int64
	// Denied are the tests of a log that is not Found because its exit code
	// says that some failed, where none of them did; else nil.
	Denied *logs.Tests
}

// ReadLog finds the tests in a log, whose text has universal newlines (see
// logs.Text). The error is the parser's: it crashed, or there is none of that
// name. Then there is no verdict at all.
func ReadLog(text, parser string, of logs.Subject) (Log, error) {
	return readLog(text, parser, func(text string) (*logs.Tests, error) { return logs.Parse(parser, text, of) })
}

// readLog is ReadLog with a way to call the parser.
func readLog(text, parser string, parse func(text string) (*logs.Tests, error)) (Log, error) {
	if !logs.Known(parser) { // also of a log that has nothing for it
		return Log{}, fmt.Errorf("%w: %.100q", logs.ErrUnknownParser, parser)
	}
	none := Log{Tests: &logs.Tests{}, ExitCode: exitCode(text)}
	for _, s := range spoilers {
		if strings.Contains(text, s) {
			return none, nil
		}
	}
	if !strings.Contains(text, StartMarker) || !strings.Contains(text, EndMarker) {
		return none, nil
	}
	tests, err := parse(between(text))
	if err == nil && !tests.Any() {
		// What runners keep back until they end comes after the markers.
		tests, err = parse(text)
	}
	switch {
	case err != nil:
		return Log{}, err // says all there is to say
	case !tests.Any() && !suiteRan(text):
		return none, nil
	case tests.Any() && none.ExitCode != nil && *none.ExitCode != 0 && !tests.AnyFailed():
		none.Denied = tests // the script failed, and no test did: somebody printed these
		return none, nil
	}
	return Log{Found: true, Tests: tests, ExitCode: none.ExitCode}, nil
}

// between is the text after the first start marker, up to the next one or to an
// end marker. The text has a start marker.
func between(text string) string {
	_, rest, _ := strings.Cut(text, StartMarker)
	rest, _, _ = strings.Cut(rest, StartMarker)
	rest, _, _ = strings.Cut(rest, EndMarker)
	return rest
}

// ranPattern finds traces of a suite that ran, where a runner names failures
// only, or nothing at all. White space and digits are Python's.
var ranPattern = lazyregexp.New(`(?m)Executed [1-9]\p{Nd}* of \p{Nd}|` +
	`TOTAL: [1-9]\p{Nd}* (?:SUCCESS|FAILED)|` +
	`[1-9]\p{Nd}* passing|` +
	`Tests:[\s\v\x1c-\x1f\x{85}\p{Z}]+[1-9]|` +
	`Test Suites:[\s\v\x1c-\x1f\x{85}\p{Z}]+(?:\p{Nd}+ [\p{L}\p{N}_]+, )*[1-9]\p{Nd}* total|` +
	`^# tests [1-9]|` +
	`[1-9]\p{Nd}* specs?, \p{Nd}+ failures?|` +
	`': ok$`)

func suiteRan(text string) bool { return ranPattern.MatchString(text) }

// exitCode is the first number after an exit marker.
func exitCode(text string) *int64 {
	for {
		_, rest, ok := strings.Cut(text, ExitMarker)
		if !ok {
			return nil
		}
		if n, ok := leadingInt(strings.TrimLeftFunc(rest, isSpace)); ok {
			return &n
		}
		text = rest
	}
}

// isSpace is Python's idea of white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f' }

// leadingInt reads the number at the start of s, in digits of any script as
// Python does. What is too large for an int64 becomes the largest.
func leadingInt(s string) (n int64, ok bool) {
	s, negative := strings.CutPrefix(s, "-")
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		d, digit := digitOf(r)
		if !digit {
			break
		}
		if ok = true; n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64
		} else {
			n = 10*n + d
		}
		s = s[size:]
	}
	if negative {
		n = -n
	}
	return n, ok
}

// digitOf is the value of a decimal digit. Unicode has them in runs of ten,
// from zero to nine.
func digitOf(r rune) (int64, bool) {
	if r <= unicode.MaxASCII {
		return int64(r - '0'), '0' <= r && r <= '9'
	}
	for _, part := range unicode.Nd.R16 {
		if lo := rune(part.Lo); lo <= r && r <= rune(part.Hi) {
			return int64(r-lo) % 10, true
		}
	}
	for _, part := range unicode.Nd.R32 {
		if lo := rune(part.Lo); lo <= r && r <= rune(part.Hi) {
			return int64(r-lo) % 10, true
		}
	}
	return 0, false
}
