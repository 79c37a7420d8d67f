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
	Empty          Class = "empty"          // the evaluation had no patch
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
	// Resolved is nil if the log could not be graded. The official harness would
	// not write a report either.
	Resolved   *bool            `json:"resolved"`
	Applied    bool             `json:"applied"` // patch_successfully_applied of report.json: the log has usable results
	Resolution grade.Resolution `json:"resolution,omitempty"`
	Counts     Counts           `json:"counts"`
	ExitCode   *int64           `json:"exit_code"` // of the tests, according to the log
	Infra      bool             `json:"infra_failure"`
	// InfraReason is one of grade.FailureReasons, or nil. If Infra is false, the
	// patch may be the cause of the problem.
	InfraReason *string `json:"infra_failure_reason"`
	Error       *string `json:"error"`

	Parser   string   `json:"parser"`
	Harness  string   `json:"harness"`  // release of the official harness with equal verdicts
	Editions []string `json:"editions"` // SHA-256 of each dataset
}

// Counts counts the tests that the row names, by result.
type Counts struct {
	FailToPass Count `json:"fail_to_pass"`
	PassToPass Count `json:"pass_to_pass"`
}

// Count counts the tests of one list. A test with an unknown status counts only in
// Total. If the log has no usable results, all tests have an unknown status.
type Count struct {
	Success int `json:"success"`
	Failure int `json:"failure"`
	Total   int `json:"total"`
}

// Line returns the JSON form of the result. rows are the rows used for grading.
func (r Result) Line(rows Rows) Line {
	spec := rows.TestSpecs[r.InstanceID]
	report := r.Verdict.Report
	line := Line{
		Path: r.Path, InstanceID: r.InstanceID, Class: r.Class(), Applied: report.Applied,
		Resolution: r.Verdict.Resolution, Counts: r.counts(spec), ExitCode: r.Verdict.ExitCode,
		Infra: report.Failure.Tier == grade.TierEnvironment, Parser: spec.Parser, Harness: logs.HarnessRelease,
		Editions: hashes(rows.Editions),
	}
	if r.Err == nil {
		line.Resolved = &report.Resolved
	} else {
		text := r.Err.Error()
		line.Error = &text
	}
	if reason := report.Failure.Reason; reason != "" {
		line.InfraReason = &reason
	}
	return line
}

func (r Result) counts(spec grade.TestSpec) Counts {
	counts := Counts{FailToPass: Count{Total: len(spec.FailToPass)}, PassToPass: Count{Total: len(spec.PassToPass)}}
	if tests := r.Verdict.Report.Tests; tests != nil {
		counts.FailToPass.Success, counts.FailToPass.Failure = len(tests.FailToPass.Success), len(tests.FailToPass.Failure)
		counts.PassToPass.Success, counts.PassToPass.Failure = len(tests.PassToPass.Success), len(tests.PassToPass.Failure)
	}
	return counts
}

func hashes(editions []datasets.SourceInfo) []string {
	sums := make([]string, len(editions))
	for i, e := range editions {
		sums[i] = e.SHA256
	}
	return sums
}
