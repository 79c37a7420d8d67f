package grade

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/specs"
	"github.com/minibench/mini/runner/grade/logs"
)

// EvalType selects the statuses that count as a failure.
type EvalType string

// The evaluation types of rows.
const (
	// PassAndFail requires that the log lists a test as passed.
	PassAndFail EvalType = "pass_and_fail"
	// FailOnly requires that the log does not list a test as failed. It is for
	// repositories whose test runners list only failed tests.
	FailOnly EvalType = "fail_only"
)

func (t EvalType) isKnown() bool { return t == PassAndFail || t == FailOnly }

func (t EvalType) unknownError() error {
	return fmt.Errorf("eval_type must be %[2]s or %[3]s, not %.100[1]q", string(t), PassAndFail, FailOnly)
}

// TestSpec holds the columns of a row that determine its verdict.
type TestSpec struct {
	InstanceID string
	Version    string // used by two parsers
	Parser     string // one of logs.Names
	EvalType   EvalType
	// FailToPass and PassToPass are the unmodified test names of the row. They may
	// have duplicates and white space at the ends.
	FailToPass, PassToPass []string
}

// ErrNotGradable reports a row that lacks information for grading.
var ErrNotGradable = errors.New("cannot be graded")

// NewTestSpec extracts the TestSpec of a row. If the row has no parser or evaluation
// type, NewTestSpec looks up the repository in the tables of SWE-bench. The error wraps
// ErrNotGradable.
func NewTestSpec(in datasets.Instance) (TestSpec, error) {
	fail := func(format string, args ...any) (TestSpec, error) {
		return TestSpec{}, fmt.Errorf("%s %w: %s", in.ID, ErrNotGradable, fmt.Sprintf(format, args...))
	}
	spec := TestSpec{
		InstanceID: in.ID,
		Version:    in.Version,
		Parser:     cmp.Or(in.LogParser, specs.LogParser(in.Repo)),
		EvalType:   EvalType(cmp.Or(in.EvalType, specs.EvalType(in.Repo))),
		FailToPass: in.FailToPass,
		PassToPass: in.PassToPass,
	}
	dataset := otherDataset(in)
	switch {
	case len(spec.FailToPass)+len(spec.PassToPass) == 0:
		return fail("FAIL_TO_PASS and PASS_TO_PASS are empty")
	case in.LogParser == "" && dataset != "":
		return fail("rows of %s use another grading method", dataset)
	case spec.Parser == "":
		return fail("the row has no log_parser, and SWE-bench has none for the repository %.100q", in.Repo)
	case !logs.IsKnown(spec.Parser):
		return fail("unknown log parser %.100q", spec.Parser)
	case spec.EvalType == "":
		return fail("the row has no eval_type, and SWE-bench has none for the repository %.100q", in.Repo)
	case !spec.EvalType.isKnown():
		return fail("%v", spec.EvalType.unknownError())
	}
	return spec, nil
}

// otherDataset returns the dataset of a row that is not from SWE-bench, or "". Rows of
// these datasets also list tests, and some have a repository of the SWE-bench tables,
// but they need another grading method.
func otherDataset(in datasets.Instance) string {
	switch {
	case strings.HasPrefix(in.Repo, "swesmith/"):
		return "SWE-smith"
	case isObject(in.Row["install_config"]):
		return "SWE-rebench"
	}
	return ""
}

// isObject reports whether a column is a JSON object, or a string that contains a JSON
// object.
func isObject(raw json.RawMessage) bool {
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(inner)
	}
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}
