package grade_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if diff := cmp.Diff(want, string(report.JSON("a__b-1"))); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(v.Report.JSON("a"))); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if v.Resolution != grade.ResolvedNo {
			t.Errorf("resolution %s", v.Resolution)
		}
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
	if got != want {
		t.Errorf("run.json is %s", got)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Grade(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.CompareTests(log.Tests), *v.Report.Tests); diff != "" {
			t.Errorf("%s: (-of all +judged):\n%s", kind, diff)
		}
	}
}
