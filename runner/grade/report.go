package grade

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/minibench/mini/runner/grade/logs"
)

// Report is what report.json says of an instance.
type Report struct {
	PatchIsNone bool // the prediction had null for a patch
	PatchExists bool // it had a patch, be it an empty one
	// Applied really says that the log could be read: the official harness
	// writes no report for a patch that does not apply.
	Applied  bool
	Resolved bool
	Failure  Failure      // only of a log that could not be read
	Tests    *TestsStatus // nil unless Applied
}

// JSON is the content of report.json, byte for byte as the official harness
// writes it.
func (r Report) JSON(instanceID string) []byte {
	return pyJSON(object{{instanceID, r.object()}}, wide)
}

func (r Report) object() object {
	o := object{
		{"patch_is_None", r.PatchIsNone},
		{"patch_exists", r.PatchExists},
		{"patch_successfully_applied", r.Applied},
		{"resolved", r.Resolved},
		{"infra_failure", r.Failure.Tier == Environment},
	}
	if r.Failure.Reason != "" {
		o = append(o, member{"infra_failure_reason", r.Failure.Reason})
	}
	if t := r.Tests; t != nil {
		sorted := func(s Sorted) object { return object{{"success", s.Success}, {"failure", s.Failure}} }
		o = append(o, member{"tests_status", object{
			{"FAIL_TO_PASS", sorted(t.FailToPass)},
			{"PASS_TO_PASS", sorted(t.PassToPass)},
			{"FAIL_TO_FAIL", sorted(Sorted{})}, // always empty, and always there
			{"PASS_TO_FAIL", sorted(Sorted{})},
		}})
	}
	return o
}

// errBadReport is for a report.json that says nothing of its instance.
var errBadReport = errors.New("not a report of this instance")

// readResolved takes from the content of report.json the one thing that a
// summary needs.
func readResolved(data []byte, instanceID string) (bool, error) {
	var all, own map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return false, fmt.Errorf("%w: %w", errBadReport, err)
	}
	if err := json.Unmarshal(all[instanceID], &own); err != nil {
		return false, fmt.Errorf("%w: %w", errBadReport, err)
	}
	raw, ok := own["resolved"]
	if !ok {
		return false, errBadReport
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // Python reads numbers of any size
	if err := dec.Decode(&value); err != nil {
		return false, fmt.Errorf("%w: %w", errBadReport, err)
	}
	switch v := value.(type) { // what Python takes for true
	case bool:
		return v, nil
	case json.Number:
		f, _ := v.Float64() // too large is infinite
		return f != 0, nil
	case string:
		return v != "", nil
	case []any:
		return len(v) > 0, nil
	case map[string]any:
		return len(v) > 0, nil
	}
	return false, nil
}

// ReadTests reads the tests of an instance from the content of its report.json.
// A report without them, as of a log that could not be read, has none.
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
	own, ok := all[instanceID]
	if !ok {
		return TestsStatus{}, errBadReport
	}
	return TestsStatus{Sorted(own.Tests.FailToPass), Sorted(own.Tests.PassToPass)}, nil
}

// Verdict is what the log of an evaluation says of a patch.
type Verdict struct {
	InstanceID string
	Report     Report
	Resolution Resolution
	// ExitCode is the one that the log has for the tests; nil when there is
	// none.
	ExitCode *int64
	Claims   Claims
}

// Claims is what a log says of tests, be it believed or not: the report is
// silent about a log that its exit code denies.
type Claims struct {
	// Passed and Failed are how many tests of the row did, by the log. A test
	// passes as it does for the verdict, and fails only where the log says so.
	Passed, Failed int
	AnyFailed      bool // some test did, of the row or not
}

// Judge gives the verdict on a log of an evaluation, whose text has universal
// newlines (see logs.Text). There was a patch, and it was applied. After an
// error there is no verdict, and no report: it wraps logs.ErrUnknownParser, a
// *logs.CrashError, or ErrNotGradable for a type of evaluation that there is
// not.
func (r Rubric) Judge(text string) (Verdict, error) {
	v := Verdict{InstanceID: r.InstanceID, Report: Report{PatchExists: true}, Resolution: No}
	of, wanted := logs.Subject{InstanceID: r.InstanceID, Version: r.Version}, r.wanted()
	log, err := readLog(text, r.Parser, func(text string) (*logs.Tests, error) {
		return logs.ParseOnly(r.Parser, text, of, wanted)
	})
	if err != nil {
		return Verdict{}, err
	}
	v.ExitCode = log.ExitCode
	if log.Denied != nil {
		v.Claims = r.claims(log.Denied, r.Compare(log.Denied))
	}
	if !log.Found {
		v.Report.Failure = Classify(text)
		return v, nil
	}
	if !r.EvalType.known() {
		return Verdict{}, fmt.Errorf("%s %w: %w", r.InstanceID, ErrNotGradable, r.EvalType.wrong())
	}
	tests := r.Compare(log.Tests)
	v.Claims = r.claims(log.Tests, tests)
	v.Resolution = tests.Resolution()
	v.Report.Applied = true
	v.Report.Resolved = v.Resolution == Full
	v.Report.Tests = &tests
	return v, nil
}

// Unpatched is the verdict where the prediction has null for a patch.
func (r Rubric) Unpatched() Verdict {
	return Verdict{InstanceID: r.InstanceID, Report: Report{PatchIsNone: true}, Resolution: No}
}
