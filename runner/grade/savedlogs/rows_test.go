package savedlogs_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
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
			require.NoError(t, err)
			want := grade.TestSpec{
				InstanceID: "a", Parser: "parse_log_pytest", EvalType: grade.PassAndFail,
				FailToPass: []string{"t"}, PassToPass: []string{},
			}
			assert.Equal(t, want, rows.TestSpecs["a"], "rubric")
			if len(rows.Unknown) != 1 || rows.Unknown[0] != "b" || len(rows.Editions) != len(tt.sets) {
				t.Errorf("unknown %v, %d editions", rows.Unknown, len(rows.Editions))
			}
		})
	}
}

func TestReadRowsThatCannotBeGraded(t *testing.T) {
	rows, err := savedlogs.ReadRows(t.Context(), sources(`"repo":"swesmith/x","FAIL_TO_PASS":["t"]`), []string{"a"})
	require.NoError(t, err)
	if err := rows.Ungradable["a"]; !errors.Is(err, grade.ErrNotGradable) || len(rows.TestSpecs) != 0 {
		t.Errorf("error %v, %d rubrics", err, len(rows.TestSpecs))
	}
}

// official opens all official datasets that are present on this machine.
func official(t testing.TB) (all []datasets.Source) {
	t.Helper()
	dir := corpustest.RealData(t, "swebench")
	for _, name := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		src, err := datasets.Local(filepath.Join(dir, name+".jsonl.gz"), "")
		require.NoError(t, err)
		all = append(all, src)
	}
	return all
}

// TestOfficialLogs compares verdicts with those of the official harness, which wrote the logs.
func TestOfficialLogs(t *testing.T) {
	dir := corpustest.RealData(t, "eval-logs")
	found := find(t, dir)
	rows, err := savedlogs.ReadRows(t.Context(), official(t), found.IDs())
	require.NoError(t, err)
	if len(rows.Unknown)+len(rows.Ungradable) > 0 {
		t.Fatalf("unknown %v, not gradable %v", rows.Unknown, rows.Ungradable)
	}
	equal := 0
	for r := range (savedlogs.Grader{}).Grade(t.Context(), found.Folders, rows.TestSpecs) {
		data, err := os.ReadFile(filepath.Join(r.Path, "report.json"))
		require.NoError(t, err)
		var report map[string]struct {
			Resolved bool `json:"resolved"`
		}
		require.NoError(t, json.Unmarshal(data, &report))
		if r.Err == nil && r.Verdict.Report.Resolved == report[r.InstanceID].Resolved {
			equal++
		} else {
			t.Errorf("%s: %s (error %v), the report has %t", r.Path, r.Class(), r.Err, report[r.InstanceID].Resolved)
		}
	}
	t.Logf("%d of %d verdicts equal the report's", equal, len(found.Folders))
	if equal < 103 {
		t.Errorf("%d verdicts equal, want 103", equal)
	}
}

// BenchmarkGrade grades the compressed real logs.
func BenchmarkGrade(b *testing.B) {
	dir := corpustest.RealData(b, "eval-logs")
	found := find(b, dir)
	rows, err := savedlogs.ReadRows(b.Context(), official(b), found.IDs())
	require.NoError(b, err)
	var bytes int64
	for b.Loop() {
		bytes = 0
		for r := range (savedlogs.Grader{}).Grade(b.Context(), found.Folders, rows.TestSpecs) {
			bytes += r.Bytes
		}
	}
	b.SetBytes(bytes)
}
