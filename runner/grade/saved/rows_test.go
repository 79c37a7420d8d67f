package saved_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/saved"
)

// sources are embedded sets of one row each, called 1, 2 ...; the columns are
// those after the id.
func sources(columns ...string) (all []datasets.Source) {
	for i, c := range columns {
		row := `{"instance_id":"a","problem_statement":"p",` + c + "}\n"
		all = append(all, datasets.Embedded(string(rune('1'+i)), []byte(row)))
	}
	return all
}

func TestReadRows(t *testing.T) {
	full := `"log_parser":"parse_log_pytest","eval_type":"pass_and_fail","FAIL_TO_PASS":["t"],"PASS_TO_PASS":[]`
	for name, tt := range map[string]struct {
		sets []string
		want string // an error; "" for none
	}{
		"one":                 {[]string{full}, ""},
		"equal":               {[]string{full, full}, ""},
		"lists as text":       {[]string{full, strings.ReplaceAll(full, `["t"]`, `"[\"t\"]"`)}, ""},
		"other columns":       {[]string{full, full + `,"hints_text":"x","difficulty":7,"eval_script":"y","patch":"z"`}, ""},
		"without columns":     {[]string{`"repo":"pytest-dev/pytest","PASS_TO_PASS":null`, full}, ""},
		"columns to add":      {[]string{full, `"log_parser":""`}, ""},
		"other tests":         {[]string{full, `"FAIL_TO_PASS":["u"]`}, "column FAIL_TO_PASS differs"},
		"fewer tests":         {[]string{full, full, `"FAIL_TO_PASS":[]`}, "not graded alike in 1 and in 3: column FAIL_TO_PASS"},
		"other tests to keep": {[]string{full, `"PASS_TO_PASS":["u"]`}, "column PASS_TO_PASS differs"},
		"another parser":      {[]string{full, `"log_parser":"parse_log_django"`}, "column log_parser differs"},
		"another type":        {[]string{full, `"eval_type":"fail_only"`}, "column eval_type differs"},
		"another version":     {[]string{full + `,"version":"1"`, `"version":"2"`}, "column version differs"},
		"another repository":  {[]string{full + `,"repo":"a/b"`, `"repo":"c/d"`}, "column repo differs"},
		"bad":                 {[]string{full, `"FAIL_TO_PASS":7`}, "2: row 1: FAIL_TO_PASS"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := saved.ReadRows(t.Context(), sources(tt.sets...), []string{"a", "b"})
			if tt.want != "" {
				if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := grade.Rubric{
				InstanceID: "a", Parser: "parse_log_pytest", EvalType: grade.PassAndFail,
				FailToPass: []string{"t"}, PassToPass: []string{},
			}
			if diff := cmp.Diff(want, rows.Rubrics["a"]); diff != "" {
				t.Errorf("rubric (-want +got):\n%s", diff)
			}
			if len(rows.Unknown) != 1 || rows.Unknown[0] != "b" || len(rows.Editions) != len(tt.sets) {
				t.Errorf("unknown %v, %d editions", rows.Unknown, len(rows.Editions))
			}
		})
	}
}

func TestReadRowsThatCannotBeGraded(t *testing.T) {
	rows, err := saved.ReadRows(t.Context(), sources(`"repo":"swesmith/x","FAIL_TO_PASS":["t"]`), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Ungradable["a"]; !errors.Is(err, grade.ErrNotGradable) || len(rows.Rubrics) != 0 {
		t.Errorf("error %v, %d rubrics", err, len(rows.Rubrics))
	}
}
