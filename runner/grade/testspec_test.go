package grade_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
)

func TestGradable(t *testing.T) {
	tests := []string{"t::a"}
	for name, tt := range map[string]struct {
		row  datasets.Instance
		want string // of the error; "" for none
	}{
		"complete":              {datasets.Instance{LogParser: "parse_log_pytest", EvalType: "fail_only", FailToPass: tests}, ""},
		"of the tables":         {datasets.Instance{Repo: "django/django", PassToPass: tests}, ""},
		"no tests":              {datasets.Instance{Repo: "django/django"}, "are empty"},
		"unknown repository":    {datasets.Instance{Repo: "a/b", FailToPass: tests}, `no log_parser, and SWE-bench has none for the repository "a/b"`},
		"unknown parser":        {datasets.Instance{Repo: "django/django", LogParser: "parse_log_nope", FailToPass: tests}, `unknown log parser "parse_log_nope"`},
		"no type":               {datasets.Instance{Repo: "a/b", LogParser: "parse_log_pytest", FailToPass: tests}, "no eval_type"},
		"another type":          {datasets.Instance{LogParser: "parse_log_pytest", EvalType: "all", FailToPass: tests}, `not "all"`},
		"of SWE-smith":          {datasets.Instance{Repo: "swesmith/a__b.1", FailToPass: tests}, "SWE-smith"},
		"of SWE-rebench":        {rebench(`{"log_parser":"parse_log_pytest"}`), "SWE-rebench"},
		"of SWE-rebench, text":  {rebench(`"{\"log_parser\":\"parse_log_pytest\"}"`), "SWE-rebench"},
		"a column of that name": {rebench(`null`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.row.ID = "a__b-1"
			_, err := grade.NewTestSpec(tt.row)
			if tt.want == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tt.want != "" && (!errors.Is(err, grade.ErrNotGradable) || !strings.Contains(err.Error(), tt.want) ||
				!strings.HasPrefix(err.Error(), "a__b-1 cannot be graded: ")) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// rebench is a row of SWE-rebench, which names its parser in another column. Its repository is
// in the tables of SWE-bench.
func rebench(config string) datasets.Instance {
	return datasets.Instance{
		Repo: "pydata/xarray", FailToPass: []string{"t::a"},
		Row: map[string]json.RawMessage{"install_config": json.RawMessage(config)},
	}
}

func TestNewTestSpec(t *testing.T) {
	r, err := grade.NewTestSpec(datasets.Instance{
		ID: "django__django-1", Repo: "django/django", Version: "3.0", FailToPass: []string{"a "}, PassToPass: []string{"b", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Parser != "parse_log_django" || r.EvalType != grade.PassAndFail || r.Version != "3.0" ||
		r.FailToPass[0] != "a " || len(r.PassToPass) != 2 {
		t.Errorf("rubric %+v", r)
	}
}
