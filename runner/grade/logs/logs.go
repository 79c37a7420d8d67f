// Package logs parses the output of test runners and returns the status of each
// test. It ports the parsers of the official SWE-bench harness
// (github.com/SWE-bench/SWE-bench, release 5.0.2) exactly, including their
// quirks, so that verdicts are equal.
//
// A parser is a pure function. If the official parser raises an exception, the port returns
// an error instead of an empty result, because there is no verdict after an exception.
//
//	tests, err := logs.Parse("parse_log_pytest", text, logs.InstanceInfo{})
//	status, ok := tests.Get("tests/test_x.py::test_y")
package logs

import (
	"errors"
	"fmt"
	"slices"
)

// HarnessRelease is the release of the official harness from which the parsers are ported.
// Verdict records contain it.
const HarnessRelease = "5.0.2"

// Status is the status of a test in a log. Some parsers use words of the log as statuses, so
// values other than the constants occur. They count neither as a pass nor as a failure.
type Status string

// The statuses that count for a verdict.
const (
	Passed  Status = "PASSED"
	Failed  Status = "FAILED"
	Skipped Status = "SKIPPED"
	Error   Status = "ERROR"
	XFail   Status = "XFAIL"
)

// statuses lists the statuses in the order of the official harness.
var statuses = [...]Status{Failed, Passed, Skipped, Error, XFail}

// InstanceInfo is the data of an instance that some parsers need.
type InstanceInfo struct {
	InstanceID string
	Version    string
}

// ErrUnknownParser reports an unknown parser name.
var ErrUnknownParser = errors.New("unknown log parser")

// CrashError reports that the official parser raises an exception on a log.
type CrashError struct {
	Parser string
	Reason string
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("parse log with %s: %s", e.Parser, e.Reason)
}

// parser adds the tests of a log to t. Its error becomes the reason of a CrashError.
type parser func(t *Tests, text string, info InstanceInfo) error

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

// Parse parses a log, or the part between the markers of the evaluation script. name is the
// name of the parser. The text must have universal newlines (see Decode). The error wraps
// ErrUnknownParser or is a *CrashError. Time and memory are linear in the length of the
// text, or limited by constants.
func Parse(name, text string, info InstanceInfo) (*Tests, error) {
	return parse(name, text, info, new(Tests))
}

// ParseOnly parses a log like Parse, for callers that need only the wanted tests. Except for
// parse_log_quarto_cli, it does not store the other tests, so that a log with millions of
// tests needs little memory. The other tests count only for Tests.Any and Tests.AnyFailed.
func ParseOnly(name, text string, info InstanceInfo, wanted func(test string) bool) (*Tests, error) {
	return parse(name, text, info, &Tests{others: newOthers(wanted)})
}

func parse(name, text string, info InstanceInfo, tests *Tests) (*Tests, error) {
	p := registry[name]
	if p == nil {
		return nil, fmt.Errorf("%w: %.100q", ErrUnknownParser, name)
	}
	if err := p(tests, text, info); err != nil {
		return nil, &CrashError{Parser: name, Reason: err.Error()}
	}
	return tests, nil
}
