package saved

import (
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// Class says in a word what came of a log.
type Class string

// The classes of results.
const (
	Resolved       Class = "resolved"
	Unresolved     Class = "unresolved"
	Empty          Class = "empty"          // there was no patch
	Infrastructure Class = "infrastructure" // the machine failed: no verdict on the patch
	Failed         Class = "error"          // the log cannot be read, or its parser crashed
)

// Classes are all of them, in the order in which they are told.
func Classes() []Class { return []Class{Resolved, Unresolved, Empty, Infrastructure, Failed} }

// Judged says that there is a verdict on the patch.
func (c Class) Judged() bool { return c == Resolved || c == Unresolved || c == Empty }

// Class is that of the result.
func (r Result) Class() Class {
	report := r.Verdict.Report
	switch {
	case r.Err != nil:
		return Failed
	case report.PatchIsNone:
		return Empty
	case report.Failure.Tier == grade.Environment:
		return Infrastructure
	case report.Resolved:
		return Resolved
	}
	return Unresolved
}

// Line is a result as JSON has it.
type Line struct {
	Path       string `json:"path"` // the folder
	InstanceID string `json:"instance_id"`
	Class      Class  `json:"class"`
	// Resolved is null where there is no report: the harness would have written
	// none either.
	Resolved   *bool            `json:"resolved"`
	Applied    bool             `json:"applied"` // as in report.json: the log could be read
	Resolution grade.Resolution `json:"resolution,omitempty"`
	Counts     Counts           `json:"counts"`
	ExitCode   *int64           `json:"exit_code"` // of the tests, as the log has it
	Infra      bool             `json:"infra_failure"`
	// InfraReason is one of grade.Reasons. It may be there without Infra: then a
	// patch may have done it as well.
	InfraReason *string `json:"infra_failure_reason"`
	Error       *string `json:"error"`

	Parser   string   `json:"parser"`
	Harness  string   `json:"harness"`  // the release that verdicts equal
	Editions []string `json:"editions"` // SHA-256 of each dataset
}

// Counts are how many tests of a row ended how.
type Counts struct {
	FailToPass Count `json:"fail_to_pass"`
	PassToPass Count `json:"pass_to_pass"`
}

// Count is of one list. A test whose status is none that verdicts know is in
// Total alone, and so is every one where the log has no verdict.
type Count struct {
	Success int `json:"success"`
	Failure int `json:"failure"`
	Total   int `json:"total"`
}

// Line is the result for programs. rows are those that it was graded by.
func (r Result) Line(rows Rows) Line {
	rubric := rows.Rubrics[r.InstanceID]
	report := r.Verdict.Report
	l := Line{
		Path: r.Path, InstanceID: r.InstanceID, Class: r.Class(), Applied: report.Applied,
		Resolution: r.Verdict.Resolution, Counts: r.counts(rubric), ExitCode: r.Verdict.ExitCode,
		Infra: report.Failure.Tier == grade.Environment, Parser: rubric.Parser, Harness: logs.Release,
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

func (r Result) counts(rubric grade.Rubric) Counts {
	c := Counts{FailToPass: Count{Total: len(rubric.FailToPass)}, PassToPass: Count{Total: len(rubric.PassToPass)}}
	if tests := r.Verdict.Report.Tests; tests != nil {
		c.FailToPass.Success, c.FailToPass.Failure = len(tests.FailToPass.Success), len(tests.FailToPass.Failure)
		c.PassToPass.Success, c.PassToPass.Failure = len(tests.PassToPass.Success), len(tests.PassToPass.Failure)
	}
	return c
}

func hashes(editions []datasets.Edition) []string {
	sums := make([]string, len(editions))
	for i, e := range editions {
		sums[i] = e.SHA256
	}
	return sums
}
