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

// EvalType says which statuses count as a failure.
type EvalType string

// The evaluation types of rows.
const (
	// PassAndFail: a test must be listed as passed.
	PassAndFail EvalType = "pass_and_fail"
	// FailOnly: a test must not be listed as failed. The test runners of some
	// repositories list failed tests only.
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
	// FailToPass and PassToPass are the test names of the row, unmodified: not
	// trimmed, with duplicates.
	FailToPass, PassToPass []string
}

// ErrNotGradable is wrapped by the error for rows without enough information
// for grading.
var ErrNotGradable = errors.New("cannot be graded")

// NewTestSpec extracts the TestSpec of a row. A missing parser or evaluation
// type is taken from the tables of SWE-bench for the repository. The error
// wraps ErrNotGradable.
func NewTestSpec(in datasets.Instance) (TestSpec, error) {
	fail := func(format string, args ...any) (TestSpec, error) {
		return TestSpec{}, fmt.Errorf("%s %w: %s", in.ID, ErrNotGradable, fmt.Sprintf(format, args...))
	}
	r := TestSpec{
		InstanceID: in.ID,
		Version:    in.Version,
		Parser:     cmp.Or(in.LogParser, specs.LogParser(in.Repo)),
		EvalType:   EvalType(cmp.Or(in.EvalType, specs.EvalType(in.Repo))),
		FailToPass: in.FailToPass,
		PassToPass: in.PassToPass,
	}
	family := otherFamily(in)
	switch {
	case len(r.FailToPass)+len(r.PassToPass) == 0:
		return fail("FAIL_TO_PASS and PASS_TO_PASS are empty")
	case in.LogParser == "" && family != "":
		return fail("rows of %s use another grading method", family)
	case r.Parser == "":
		return fail("the row has no log_parser, and SWE-bench has none for the repository %.100q", in.Repo)
	case !logs.IsKnown(r.Parser):
		return fail("unknown log parser %.100q", r.Parser)
	case r.EvalType == "":
		return fail("the row has no eval_type, and SWE-bench has none for the repository %.100q", in.Repo)
	case !r.EvalType.isKnown():
		return fail("%v", r.EvalType.unknownError())
	}
	return r, nil
}

// otherFamily returns the dataset family of a row that is not of SWE-bench, or
// "". Such rows name tests too, and sometimes a repository of the SWE-bench
// tables.
func otherFamily(in datasets.Instance) string {
	switch {
	case strings.HasPrefix(in.Repo, "swesmith/"):
		return "SWE-smith"
	case isObject(in.Row["install_config"]):
		return "SWE-rebench"
	}
	return ""
}

// isObject reports whether a column is a JSON object, or a string that holds
// one.
func isObject(raw json.RawMessage) bool {
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(inner)
	}
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}
