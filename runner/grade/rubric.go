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

// EvalType says which tests count against a patch.
type EvalType string

// The kinds of evaluation that rows name.
const (
	// PassAndFail: a test has to be seen to pass.
	PassAndFail EvalType = "pass_and_fail"
	// FailOnly: a test must not be seen to fail. The runners of some
	// repositories print failures only.
	FailOnly EvalType = "fail_only"
)

func (t EvalType) known() bool { return t == PassAndFail || t == FailOnly }

func (t EvalType) wrong() error {
	return fmt.Errorf("eval_type is %.100q, and has to be %s or %s", string(t), PassAndFail, FailOnly)
}

// Rubric is what of a row decides its verdict, and nothing else of it.
type Rubric struct {
	InstanceID string
	Version    string // two parsers ask for it
	Parser     string // as in logs.Names
	EvalType   EvalType
	// FailToPass and PassToPass are names of tests as in the row: never
	// trimmed, duplicates kept.
	FailToPass, PassToPass []string
}

// ErrNotGradable is wrapped by the error for rows whose grading is not
// specified.
var ErrNotGradable = errors.New("cannot be graded")

// RubricOf takes from a row what its verdict needs. A parser or a type that
// the row lacks is that of its repository in the tables of SWE-bench. The error
// wraps ErrNotGradable.
func RubricOf(in datasets.Instance) (Rubric, error) {
	not := func(format string, args ...any) (Rubric, error) {
		return Rubric{}, fmt.Errorf("%s %w: %s", in.ID, ErrNotGradable, fmt.Sprintf(format, args...))
	}
	r := Rubric{
		InstanceID: in.ID,
		Version:    in.Version,
		Parser:     cmp.Or(in.LogParser, specs.Parser(in.Repo)),
		EvalType:   EvalType(cmp.Or(in.EvalType, specs.EvalType(in.Repo))),
		FailToPass: in.FailToPass,
		PassToPass: in.PassToPass,
	}
	family := relative(in)
	switch {
	case len(r.FailToPass)+len(r.PassToPass) == 0:
		return not("the row names no tests in FAIL_TO_PASS and PASS_TO_PASS")
	case in.LogParser == "" && family != "":
		return not("it is a row of %s, which is graded in another way", family)
	case r.Parser == "":
		return not("the row has no log_parser, and SWE-bench has none for repository %.100q", in.Repo)
	case !logs.Known(r.Parser):
		return not("there is no log parser %.100q", r.Parser)
	case r.EvalType == "":
		return not("the row has no eval_type, and SWE-bench has none for repository %.100q", in.Repo)
	case !r.EvalType.known():
		return not("%v", r.EvalType.wrong())
	}
	return r, nil
}

// relative names the other family of sets that a row is of, if any. Rows of
// these name tests too, and sometimes a repository that the tables have.
func relative(in datasets.Instance) string {
	switch {
	case strings.HasPrefix(in.Repo, "swesmith/"):
		return "SWE-smith"
	case isObject(in.Row["install_config"]):
		return "SWE-rebench"
	}
	return ""
}

func isObject(raw json.RawMessage) bool {
	var inner string
	if json.Unmarshal(raw, &inner) == nil { // a column may hold JSON as text
		raw = json.RawMessage(inner)
	}
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}
