package grade_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// The expected bytes are the output of Python's json.dumps(report, indent=4).
func TestReportJSON(t *testing.T) {
	tests := grade.TestsStatus{
		FailToPass: grade.TestResults{Success: []string{"caf\u00e9 \"x\" \\ </b>\t\x7f\u2028", "\U0001f600"}},
		PassToPass: grade.TestResults{Failure: []string{"a\x00\b\f\r\n"}},
	}
	report := grade.Report{PatchExists: true, Applied: true, Tests: &tests}
	want := `{
    "a__b-1": {
        "patch_is_None": false,
        "patch_exists": true,
        "patch_successfully_applied": true,
        "resolved": false,
        "infra_failure": false,
        "tests_status": {
            "FAIL_TO_PASS": {
                "success": [
                    "caf\u00e9 \"x\" \\ </b>\t\u007f\u2028",
                    "\ud83d\ude00"
                ],
                "failure": []
            },
            "PASS_TO_PASS": {
                "success": [],
                "failure": [
                    "a\u0000\b\f\r\n"
                ]
            },
            "FAIL_TO_FAIL": {
                "success": [],
                "failure": []
            },
            "PASS_TO_FAIL": {
                "success": [],
                "failure": []
            }
        }
    }
}`
	assert.Equal(t, want, string(report.JSON("a__b-1")), "report")
}

func TestGradeWithoutVerdict(t *testing.T) {
	r := grade.TestSpec{InstanceID: "a", Parser: "parse_log_pytest", EvalType: grade.PassAndFail, FailToPass: []string{"t::a"}}
	for text, want := range map[string]string{
		"Killed\n": `{
    "a": {
        "patch_is_None": false,
        "patch_exists": true,
        "patch_successfully_applied": false,
        "resolved": false,
        "infra_failure": true,
        "infra_failure_reason": "out_of_memory"
    }
}`,
		"ModuleNotFoundError": `{
    "a": {
        "patch_is_None": false,
        "patch_exists": true,
        "patch_successfully_applied": false,
        "resolved": false,
        "infra_failure": false,
        "infra_failure_reason": "missing_module"
    }
}`,
	} {
		v, err := r.Grade(text)
		require.NoError(t, err)
		assert.Equal(t, want, string(v.Report.JSON("a")), "report")
		assert.Equal(t, grade.ResolvedNo, v.Resolution, "resolution")
	}
}

func TestRunInfo(t *testing.T) {
	got := string(grade.RunInfo{Dataset: "lite", Split: "test", CreatedAt: "2026-08-18T00:00:00Z"}.JSON())
	want := `{
  "dataset": "lite",
  "split": "test",
  "task_repo": null,
  "created_at": "2026-08-18T00:00:00Z"
}
`
	assert.Equal(t, want, got, "run.json")
}

// Grade parses only the tests of the row. The results must equal those of comparing with
// all tests of the log.
func TestGradeEqualsCompareTests(t *testing.T) {
	text := marked("PASSED t.py::a[x y]\nFAILED t.py::a[z]\nPASSED t.py::b[1 2]\nPASSED t.py::b[1 3]\nFAILED t.py::c\nPASSED other\nPASSED t.py::[d e]\n")
	for _, kind := range []grade.EvalType{grade.PassAndFail, grade.FailOnly} {
		r := grade.TestSpec{
			InstanceID: "a", Parser: "parse_log_astropy", EvalType: kind,
			FailToPass: []string{"t.py::a[x", "t.py::a[", "t.py::c", "t.py::c", "t.py::[d"}, PassToPass: []string{"t.py::b[1", "t.py::b", "t.py::[d e]", "["},
		}
		log, err := grade.ReadLog(text, r.Parser, logs.InstanceInfo{})
		require.NoError(t, err)
		v, err := r.Grade(text)
		require.NoError(t, err)
		assert.NoDiff(t, cmp.Diff(r.CompareTests(log.Tests), *v.Report.Tests), "%s: (-of all +judged)", kind)
	}
}

// write writes a file below dir.
func write(t *testing.T, text string, dir ...string) {
	t.Helper()
	path := filepath.Join(dir...)
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

func TestSummarize(t *testing.T) {
	root := t.TempDir()
	run, err := grade.NewLayout(root, "r")
	require.NoError(t, err)
	var ids []string
	var predictions []grade.Prediction
	for id, files := range map[string]map[string]string{
		"resolved":   {"report.json": `{"resolved": {"resolved": true}}`},
		"unresolved": {"report.json": `{"unresolved": {"resolved": false}}`, "test_output.txt": "fine", "run_instance.log": "no tests ran"},
		"null":       {"report.json": `null`},
		"list":       {"report.json": `[]`},
		"no key":     {"report.json": `{"no key": {}}`},
		"a string":   {"report.json": `{"a string": "resolved"}`},
		"no report":  {"test_output.txt": "Killed\r\n"},
		"nothing":    {},
	} {
		ids = append(ids, id)
		predictions = append(predictions, grade.Prediction{InstanceID: id, Model: "m/x"})
		for name, text := range files {
			write(t, text, root, "logs/run_evaluation/r/m__x", id, name)
		}
	}
	sum, err := run.Summarize(append(ids, "B", "a", "\ue000", "\U0001f600"), predictions)
	require.NoError(t, err)
	want := grade.Summary{
		Total:             12,
		Completed:         []string{"a string", "list", "no key", "null", "resolved", "unresolved"},
		Incomplete:        []string{"B", "a", "\ue000", "\U0001f600"},
		Submitted:         []string{"a string", "list", "no key", "no report", "nothing", "null", "resolved", "unresolved"},
		Resolved:          []string{"resolved"},
		Unresolved:        []string{"unresolved"},
		Errors:            []string{"a string", "list", "no key", "no report", "nothing", "null"},
		InfraFailures:     []string{"no report"},
		AmbiguousFailures: []string{"unresolved"},
		FailureReasons:    map[string]string{"no report": "out_of_memory", "unresolved": "no_tests_collected"},
	}
	assert.Equal(t, string(want.JSON()), string(sum.JSON()), "summary")
}

func TestSummarizeRefuses(t *testing.T) {
	root := t.TempDir()
	run, err := grade.NewLayout(root, "r")
	require.NoError(t, err)
	_, err = run.Summarize([]string{"a"}, []grade.Prediction{{InstanceID: "a", Model: ".."}})
	assert.ErrorIs(t, err, grade.ErrInvalidName, "a model that leads elsewhere")
	write(t, "", root, "logs/run_evaluation/r/m/a/report.json/x")
	_, err = run.Summarize([]string{"a"}, []grade.Prediction{{InstanceID: "a", Model: "m"}})
	assert.ErrorContains(t, err, "not a regular file", "a report that is a folder")
}

func TestEmptySummary(t *testing.T) {
	got := string(grade.Summary{}.JSON())
	for _, want := range []string{"{\n    \"total_instances\": 0,\n", "\"completed_ids\": [],\n", "\"failure_reasons\": {},\n", "    \"schema_version\": 2\n}\n"} {
		assert.Contains(t, got, want)
	}
	got = string(grade.Summary{Total: 2, Errors: []string{"b", "a", "b"}}.JSON()) // a dataset may have a row twice
	if want := "\"error_instances\": 2,"; !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
}
