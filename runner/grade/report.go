package grade

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/minibench/mini/runner/grade/logs"
)

// Report is the content of report.json for an instance.
type Report struct {
	PatchIsNone bool // the patch of the prediction is null
	PatchExists bool // the prediction has a patch, possibly an empty one
	// Applied reports whether the log has usable results. Its name in the file is
	// misleading: for a patch that does not apply, there is no report at all.
	Applied  bool
	Resolved bool
	Failure  Failure      // set only if Applied is false
	Tests    *TestsStatus // nil unless Applied
}

// JSON returns the content of report.json, byte for byte as the official
// harness writes it.
func (r Report) JSON(instanceID string) []byte {
	type sorted struct {
		Success []string `json:"success"`
		Failure []string `json:"failure"`
	}
	type status struct {
		FailToPass sorted `json:"FAIL_TO_PASS"`
		PassToPass sorted `json:"PASS_TO_PASS"`
		FailToFail sorted `json:"FAIL_TO_FAIL"` // this and the next are always empty
		PassToFail sorted `json:"PASS_TO_FAIL"`
	}
	type report struct {
		PatchIsNone bool    `json:"patch_is_None"`
		PatchExists bool    `json:"patch_exists"`
		Applied     bool    `json:"patch_successfully_applied"`
		Resolved    bool    `json:"resolved"`
		Infra       bool    `json:"infra_failure"`
		Reason      string  `json:"infra_failure_reason,omitempty"`
		Tests       *status `json:"tests_status,omitempty"`
	}
	file := report{r.PatchIsNone, r.PatchExists, r.Applied, r.Resolved, r.Failure.Tier == TierEnvironment, r.Failure.Reason, nil}
	if t := r.Tests; t != nil {
		lists := func(s TestResults) sorted { return sorted{nonNil(s.Success), nonNil(s.Failure)} }
		file.Tests = &status{lists(t.FailToPass), lists(t.PassToPass), lists(TestResults{}), lists(TestResults{})}
	}
	return pyJSON(map[string]report{instanceID: file}, wideIndent)
}

// nonNil returns an empty list for nil, because JSON has null for a nil slice.
func nonNil(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// errBadReport reports a report.json that is malformed or lacks the instance.
var errBadReport = errors.New("not a report of this instance")

// ReadResolved reads from a report.json whether the instance is resolved.
func ReadResolved(data []byte, instanceID string) (bool, error) {
	var all map[string]struct {
		Resolved *bool `json:"resolved"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return false, fmt.Errorf("%w: %w", errBadReport, err)
	}
	if all[instanceID].Resolved == nil {
		return false, errBadReport
	}
	return *all[instanceID].Resolved, nil
}

// ReadTests returns the test results of an instance in a report.json. They are
// empty if the log had no usable results.
func ReadTests(data []byte, instanceID string) (TestsStatus, error) {
	type sorted struct{ Success, Failure []string }
	var all map[string]struct {
		Tests struct {
			FailToPass sorted `json:"FAIL_TO_PASS"`
			PassToPass sorted `json:"PASS_TO_PASS"`
		} `json:"tests_status"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return TestsStatus{}, fmt.Errorf("%w: %w", errBadReport, err)
	}
	entry, ok := all[instanceID]
	if !ok {
		return TestsStatus{}, errBadReport
	}
	return TestsStatus{TestResults(entry.Tests.FailToPass), TestResults(entry.Tests.PassToPass)}, nil
}

// Verdict is the result of grading a log.
type Verdict struct {
	InstanceID string
	Report     Report
	Resolution Resolution
	// ExitCode is the exit code of the tests according to the log; nil if there
	// is none.
	ExitCode  *int64
	LogCounts LogCounts
}

// LogCounts counts the tests of a log. It includes tests that the verdict does not
// use because the exit code contradicts them.
type LogCounts struct {
	// Passed and Failed count the row's tests. A test counts as failed only if its
	// status in the log is Failed or Error.
	Passed, Failed int
	AnyFailed      bool // whether any test failed, including tests that are not in the row
	// Listed counts the names of the row's tests that the log has as passed.
	Listed      int
	Overwritten string // see logs.Tests
}

// Grade returns the verdict on a log. The patch must have applied, and the text must
// have universal newlines (see logs.Decode). If Grade returns an error, there is no
// verdict and no report. The error wraps logs.ErrUnknownParser, a *logs.CrashError, or
// ErrNotGradable for an unknown evaluation type.
func (r TestSpec) Grade(text string) (Verdict, error) {
	v := Verdict{InstanceID: r.InstanceID, Report: Report{PatchExists: true}, Resolution: ResolvedNo}
	info, isNeeded := logs.InstanceInfo{InstanceID: r.InstanceID, Version: r.Version}, r.neededTests()
	log, err := readLog(text, r.Parser, func(text string) (*logs.Tests, error) {
		return logs.ParseOnly(r.Parser, text, info, isNeeded)
	})
	if err != nil {
		return Verdict{}, err
	}
	v.ExitCode = log.ExitCode
	if log.Contradicted != nil {
		v.LogCounts = r.logCounts(log.Contradicted, r.CompareTests(log.Contradicted))
	}
	if !log.HasResults {
		v.Report.Failure = ClassifyFailure(text)
		return v, nil
	}
	if !r.EvalType.isKnown() {
		return Verdict{}, fmt.Errorf("%s %w: %w", r.InstanceID, ErrNotGradable, r.EvalType.unknownError())
	}
	tests := r.CompareTests(log.Tests)
	v.LogCounts = r.logCounts(log.Tests, tests)
	v.Resolution = tests.Resolution()
	v.Report.Applied = true
	v.Report.Resolved = v.Resolution == ResolvedFull
	v.Report.Tests = &tests
	return v, nil
}

// GradeEmptyPatch returns the verdict on a prediction whose patch is null.
func (r TestSpec) GradeEmptyPatch() Verdict {
	return Verdict{InstanceID: r.InstanceID, Report: Report{PatchIsNone: true}, Resolution: ResolvedNo}
}
