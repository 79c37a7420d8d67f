package savedlogs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/savedlogs"
)

// sources returns embedded datasets of one row each, with the names 1, 2 and so on. The arguments
// are the columns after the id.
func sources(columns ...string) (all []datasets.Source) {
	for i, c := range columns {
		row := `{"instance_id":"a","problem_statement":"p",` + c + "}\n"
		all = append(all, datasets.Embedded(string(rune('1'+i)), []byte(row)))
	}
	return all
}

func TestReadRows(t *testing.T) {
	full := `"log_parser":"parse_log_pytest","eval_type":"pass_and_fail","FAIL_TO_PASS":["t"],"PASS_TO_PASS":[]`
	with := func(old, now string) string { return strings.Replace(full, old, now, 1) }
	for name, tt := range map[string]struct {
		sets []string
		want string // error; "" for none
	}{
		"one":                 {[]string{full}, ""},
		"equal":               {[]string{full, full}, ""},
		"lists as text":       {[]string{full, strings.ReplaceAll(full, `["t"]`, `"[\"t\"]"`)}, ""},
		"other columns":       {[]string{full, full + `,"hints_text":"x","difficulty":7,"eval_script":"y","patch":"z"`}, ""},
		"without columns":     {[]string{`"repo":"pytest-dev/pytest","PASS_TO_PASS":null`, full}, ""},
		"columns to add":      {[]string{full, `"log_parser":""`}, ""},
		"other tests":         {[]string{full, with(`["t"]`, `["u"]`)}, "different grading columns in 1 and 2"},
		"fewer tests":         {[]string{full, full, with(`["t"]`, `["t","t"]`)}, "different grading columns in 1 and 3"},
		"other tests to keep": {[]string{full, with(`[]`, `["u"]`)}, "different grading columns"},
		"another parser":      {[]string{full, with("pytest", "django")}, "different grading columns"},
		"another type":        {[]string{full, with("pass_and_fail", "fail_only")}, "different grading columns"},
		"another version":     {[]string{full + `,"version":"1"`, full + `,"version":"2"`}, "different grading columns"},
		"bad":                 {[]string{full, `"FAIL_TO_PASS":7`}, "2: row 1: FAIL_TO_PASS"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := savedlogs.ReadRows(t.Context(), sources(tt.sets...), []string{"a", "b"})
			if tt.want != "" {
				if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := grade.TestSpec{
				InstanceID: "a", Parser: "parse_log_pytest", EvalType: grade.PassAndFail,
				FailToPass: []string{"t"}, PassToPass: []string{},
			}
			if diff := cmp.Diff(want, rows.TestSpecs["a"]); diff != "" {
				t.Errorf("rubric (-want +got):\n%s", diff)
			}
			if len(rows.Unknown) != 1 || rows.Unknown[0] != "b" || len(rows.Editions) != len(tt.sets) {
				t.Errorf("unknown %v, %d editions", rows.Unknown, len(rows.Editions))
			}
		})
	}
}

func TestReadRowsThatCannotBeGraded(t *testing.T) {
	rows, err := savedlogs.ReadRows(t.Context(), sources(`"repo":"swesmith/x","FAIL_TO_PASS":["t"]`), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Ungradable["a"]; !errors.Is(err, grade.ErrNotGradable) || len(rows.TestSpecs) != 0 {
		t.Errorf("error %v, %d rubrics", err, len(rows.TestSpecs))
	}
}
