// Package logs parses the output of test runners and returns the status of each
// test. It ports the parsers of the official SWE-bench harness
// (github.com/SWE-bench/SWE-bench, release 5.0.2) exactly, including their
// quirks, so that verdicts are equal.
//
// A parser is a pure function. If the official parser raises an exception, the
// port returns an error, never an empty result: a crash means no verdict.
//
//	tests, err := logs.Parse("parse_log_pytest", text, logs.InstanceInfo{})
//	status, ok := tests.Get("tests/test_x.py::test_y")
package logs

import (
	"errors"
	"fmt"
	"slices"
)

// HarnessRelease is the release of the official harness whose parsers are
// ported. It is recorded with each verdict.
const HarnessRelease = "5.0.2"

// Status is the status of a test in a log. Some parsers use words of the log,
// so other values occur; these count neither as a pass nor as a failure.
type Status string

// The statuses that count for a verdict.
const (
	Passed  Status = "PASSED"
	Failed  Status = "FAILED"
	Skipped Status = "SKIPPED"
	Error   Status = "ERROR"
	XFail   Status = "XFAIL"
)

// statuses has the order of the official harness.
var statuses = [...]Status{Failed, Passed, Skipped, Error, XFail}

// InstanceInfo is what some parsers need to know about the instance.
type InstanceInfo struct {
	InstanceID string
	Version    string
}

// ErrUnknownParser is wrapped by the error for an unknown parser name.
var ErrUnknownParser = errors.New("unknown log parser")

// CrashError reports that the official parser raises an exception on a log.
type CrashError struct {
	Parser string
	Reason string
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("parse log with %s: %s", e.Parser, e.Reason)
}

// parser adds the tests of a log to t. An error is the reason of a CrashError.
type parser func(t *Tests, text string, of InstanceInfo) error

// IsKnown reports whether a parser with this name exists.
func IsKnown(name string) bool { return registry[name] != nil }

// Names returns the sorted names of the parsers.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Parse parses a log, or the part between the markers of the evaluation script.
// The text has universal newlines (see Decode). The error wraps
// ErrUnknownParser or is a *CrashError. Time and memory are linear in the
// length of the text.
func Parse(name, text string, of InstanceInfo) (*Tests, error) {
	return parse(name, text, of, new(Tests))
}

// ParseOnly is Parse for callers that need some tests only. It does not keep
// the other tests, so a log with millions of tests needs little memory; they
// count for Any and AnyFailed only.
func ParseOnly(name, text string, of InstanceInfo, wanted func(test string) bool) (*Tests, error) {
	return parse(name, text, of, &Tests{others: newOthers(wanted)})
}

func parse(name, text string, of InstanceInfo, tests *Tests) (*Tests, error) {
	p := registry[name]
	if p == nil {
		return nil, fmt.Errorf("%w: %.100q", ErrUnknownParser, name)
	}
	if err := p(tests, text, of); err != nil {
		return nil, &CrashError{Parser: name, Reason: err.Error()}
	}
	return tests, nil
}
