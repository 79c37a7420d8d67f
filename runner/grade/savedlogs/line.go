package savedlogs

import (
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// Class is the outcome of grading a log.
type Class string

// The classes of results.
const (
	Resolved       Class = "resolved"
	Unresolved     Class = "unresolved"
	Empty          Class = "empty"          // there was no patch
	Infrastructure Class = "infrastructure" // no verdict: the machine failed
	Errored        Class = "error"          // no verdict: the log is unreadable, or its parser crashed
)

// Classes returns all classes in display order.
func Classes() []Class { return []Class{Resolved, Unresolved, Empty, Infrastructure, Errored} }

// HasVerdict reports whether the class is a verdict on the patch.
func (c Class) HasVerdict() bool { return c == Resolved || c == Unresolved || c == Empty }

// Class returns the class of the result.
func (r Result) Class() Class {
	report := r.Verdict.Report
	switch {
	case r.Err != nil:
		return Errored
	case report.PatchIsNone:
		return Empty
	case report.Failure.Tier == grade.TierEnvironment:
		return Infrastructure
	case report.Resolved:
		return Resolved
	}
	return Unresolved
}

// Line is the JSON form of a result.
type Line struct {
	Path       string `json:"path"` // of the folder
	InstanceID string `json:"instance_id"`
	Class      Class  `json:"class"`
	// Resolved is nil if there is no report; the official harness would not
	// write one either.
	Resolved   *bool            `json:"resolved"`
	Applied    bool             `json:"applied"` // as in report.json: the log has usable results
	Resolution grade.Resolution `json:"resolution,omitempty"`
	Counts     Counts           `json:"counts"`
	ExitCode   *int64           `json:"exit_code"` // of the tests, according to the log
	Infra      bool             `json:"infra_failure"`
	// InfraReason is one of grade.FailureReasons. If Infra is false, the patch
	// may be the cause.
	InfraReason *string `json:"infra_failure_reason"`
	Error       *string `json:"error"`

	Parser   string   `json:"parser"`
	Harness  string   `json:"harness"`  // release of the official harness with equal verdicts
	Editions []string `json:"editions"` // SHA-256 of each dataset
}

// Counts counts the row's tests by result.
type Counts struct {
	FailToPass Count `json:"fail_to_pass"`
	PassToPass Count `json:"pass_to_pass"`
}

// Count counts the tests of one list. A test with an unknown status counts for
// Total only, as do all tests if the log has no usable results.
type Count struct {
	Success int `json:"success"`
	Failure int `json:"failure"`
	Total   int `json:"total"`
}

// Line returns the JSON form of the result. rows are the rows used for grading.
func (r Result) Line(rows Rows) Line {
	rubric := rows.TestSpecs[r.InstanceID]
	report := r.Verdict.Report
	l := Line{
		Path: r.Path, InstanceID: r.InstanceID, Class: r.Class(), Applied: report.Applied,
		Resolution: r.Verdict.Resolution, Counts: r.counts(rubric), ExitCode: r.Verdict.ExitCode,
		Infra: report.Failure.Tier == grade.TierEnvironment, Parser: rubric.Parser, Harness: logs.HarnessRelease,
		Editions: hashes(rows.Editions),
	}
	if r.Err == nil {
		l.Resolved = &report.Resolved
	} else {
		text := r.Err.Error()
		l.Error = &text
	}
	if reason := report.Failure.Reason; reason != "" {
		l.InfraReason = &reason
	}
	return l
}

func (r Result) counts(rubric grade.TestSpec) Counts {
	c := Counts{FailToPass: Count{Total: len(rubric.FailToPass)}, PassToPass: Count{Total: len(rubric.PassToPass)}}
	if tests := r.Verdict.Report.Tests; tests != nil {
		c.FailToPass.Success, c.FailToPass.Failure = len(tests.FailToPass.Success), len(tests.FailToPass.Failure)
		c.PassToPass.Success, c.PassToPass.Failure = len(tests.PassToPass.Success), len(tests.PassToPass.Failure)
	}
	return c
}

func hashes(editions []datasets.SourceInfo) []string {
	sums := make([]string, len(editions))
	for i, e := range editions {
		sums[i] = e.SHA256
	}
	return sums
}
