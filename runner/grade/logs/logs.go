// Package logs reads the output of test runners: from the text of a log to
// what became of each test. Its parsers are those of the official SWE-bench
// harness (github.com/SWE-bench/SWE-bench, release 5.0.2), to the letter, where
// they are odd too: a verdict here is to equal a verdict there.
//
// A parser is a pure function. Where the official one would raise an
// exception, it returns an error, never an empty map: a crash is no verdict.
//
//	tests, err := logs.Parse("parse_log_pytest", text, logs.Subject{})
//	status, ok := tests.Get("tests/test_x.py::test_y")
package logs

import (
	"errors"
	"fmt"
	"slices"
)

// Release is the harness whose parsers these are. It goes with each verdict.
const Release = "5.0.2"

// Status is what a log says of a test. Some parsers record a word of the log as
// it stands there, so that other values than these occur; they count neither as
// a pass nor as a failure.
type Status string

// The statuses that verdicts know.
const (
	Passed  Status = "PASSED"
	Failed  Status = "FAILED"
	Skipped Status = "SKIPPED"
	Error   Status = "ERROR"
	XFail   Status = "XFAIL"
)

// statuses is in the order of the harness.
var statuses = [...]Status{Failed, Passed, Skipped, Error, XFail}

// Subject is what a few parsers need to know of the instance.
type Subject struct {
	InstanceID string
	Version    string
}

// ErrUnknownParser says that no parser has this name.
var ErrUnknownParser = errors.New("unknown log parser")

// CrashError says that the official parser raises an exception on this text.
type CrashError struct {
	Parser string
	Reason string
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("the parser %s cannot read this log: %s", e.Parser, e.Reason)
}

// parser is one function of the registry. It fills t. An error is the reason of
// a crash.
type parser func(t *Tests, text string, of Subject) error

// Known says whether a parser has this name.
func Known(name string) bool { return registry[name] != nil }

// Names are the parsers there are, sorted.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Parse reads a log, or the part of one between the markers of the evaluation
// script. The text has universal newlines already (see Text). The error wraps
// ErrUnknownParser or is a *CrashError. Time and memory grow with the length of
// the text, and no faster, whatever it says.
func Parse(name, text string, of Subject) (*Tests, error) { return parse(name, text, of, new(Tests)) }

// ParseOnly is Parse for who wants some tests only: others need not be kept, so
// that a log with millions of them takes little memory. Whether any was seen,
// and whether any failed, Any and AnyFailed say of all.
func ParseOnly(name, text string, of Subject, wanted func(test string) bool) (*Tests, error) {
	return parse(name, text, of, &Tests{others: newOthers(wanted)})
}

func parse(name, text string, of Subject, tests *Tests) (*Tests, error) {
	p := registry[name]
	if p == nil {
		return nil, fmt.Errorf("%w: %.100q", ErrUnknownParser, name)
	}
	if err := p(tests, text, of); err != nil {
		return nil, &CrashError{Parser: name, Reason: err.Error()}
	}
	return tests, nil
}
