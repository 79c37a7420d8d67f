package grade_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logs"
)

// marked returns a log with a text between its markers.
func marked(output string) string {
	return "+ : '>>>>> Start Test Output'\n" + output + "+ : '>>>>> End Test Output'\n"
}

func TestReadLog(t *testing.T) {
	passed, failed := "PASSED t::a\n", "FAILED t::a\n"
	for name, tt := range map[string]struct {
		text  string
		found bool
		tests int
	}{
		"plain":                       {marked(passed), true, 1},
		"nothing":                     {"", false, 0},
		"no markers":                  {passed, false, 0},
		"no end":                      {">>>>> Start Test Output\n" + passed, false, 0},
		"no start":                    {passed + ">>>>> End Test Output\n", false, 0},
		"spoiled":                     {marked(passed) + "x >>>>> Tests Errored", false, 0},
		"spoiled between":             {marked(passed + ">>>>> Reset Failed\n"), false, 0},
		"flushed behind the markers":  {marked("") + passed, true, 1},
		"only between":                {"PASSED t::b\n" + marked(passed) + "PASSED t::c\n", true, 1},
		"a second start cuts":         {marked(passed) + marked("PASSED t::b\n"), true, 1},
		"an end before the start":     {">>>>> End Test Output\n>>>>> Start Test Output\n" + passed, true, 1},
		"empty":                       {marked(""), false, 0},
		"empty, but it ran":           {marked("  12 passing (3s)\n"), true, 0},
		"none passing":                {marked("  0 passing (3s)\n"), false, 0},
		"exit 0":                      {marked(passed) + ">>>>> Test Exit Code: 0\n", true, 1},
		"exit 1, none failed":         {marked(passed) + ">>>>> Test Exit Code: 1\n", false, 0},
		"exit 1, one failed":          {marked(failed) + ">>>>> Test Exit Code: 1\n", true, 1},
		"exit 1, an error":            {marked("ERROR t::a\n") + ">>>>> Test Exit Code: 1\n", true, 1},
		"exit 1, another word":        {marked("XFAILED t::a\n") + ">>>>> Test Exit Code: 1\n", false, 0},
		"the first exit code counts":  {marked(passed) + ">>>>> Test Exit Code: 0\n>>>>> Test Exit Code: 1\n", true, 1},
		"killed by a signal":          {marked(passed) + ">>>>> Test Exit Code: -9\n", false, 0},
		"exit 1, empty, but it ran":   {marked("Executed 3 of 3\n") + ">>>>> Test Exit Code: 1\n", true, 0},
		"exit code without a number":  {marked(passed) + ">>>>> Test Exit Code: $?\n", true, 1},
		"an exit code far below":      {marked(passed) + ">>>>> Test Exit Code:\n\n \u2003\x1c1\n", false, 0},
		"an exit code in Arabic":      {marked(passed) + ">>>>> Test Exit Code: \u0661\n", false, 0},
		"no number, then one":         {marked(passed) + ">>>>> Test Exit Code: x\n>>>>> Test Exit Code: 2\n", false, 0},
		"an exit code beyond numbers": {marked(passed) + ">>>>> Test Exit Code: " + strings.Repeat("9", 400), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := grade.ReadLog(tt.text, "parse_log_pytest", logs.InstanceInfo{})
			require.NoError(t, err)
			if log.HasResults != tt.found || log.Tests.Len() != tt.tests {
				t.Errorf("found %t with %d tests, want %t with %d", log.HasResults, log.Tests.Len(), tt.found, tt.tests)
			}
		})
	}
}

// These lines show that a suite ran even if the log has no test names.
func TestSuiteRan(t *testing.T) {
	for text, want := range map[string]bool{
		"Executed 10 of 12":                       true,
		"Executed 0 of 12":                        false,
		"Executed 1 of":                           false,
		"TOTAL: 5 SUCCESS":                        true,
		"TOTAL: 0 SUCCESS":                        false,
		"TOTAL: 5 OTHER":                          false,
		"Tests:       3 passed":                   true,
		"Tests:\u00a03":                           true,
		"Tests: 0 total":                          false,
		"Tests:3":                                 false,
		"Test Suites: 1 failed, 2 total":          true,
		"Test Suites: 1 failed, 0 total":          false,
		"Test Suites: 4 total":                    true,
		"# tests 4":                               true,
		"x\n# tests 4":                            true,
		" # tests 4":                              false,
		"# tests 0":                               false,
		"3 specs, 0 failures":                     true,
		"1 spec, 0 failures":                      true,
		"0 specs, 0 failures":                     false,
		"rendering 'x': ok":                       true,
		"rendering 'x': ok\nmore":                 true,
		"rendering 'x': okay":                     false,
		"1\u0663 passing":                         true,
		"\u0663 passing":                          false,
		"Test Suites: 1 f\u00e4hl, 2 ok, 7 total": true,
	} {
		log, err := grade.ReadLog(marked(text+"\n"), "parse_log_chart_js", logs.InstanceInfo{})
		if err != nil || log.HasResults != want {
			t.Errorf("%q: found %t, error %v; want %t", text, log.HasResults, err, want)
		}
	}
}

func TestExitCode(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "00": 0, "-0": 0, "137": 137, "-9": -9, " \t\n7x": 7, "\u0661\u0662": 12, "\U0001d7d9": 1, // digits of several scripts
		strings.Repeat("9", 30): math.MaxInt64, "-" + strings.Repeat("9", 30): math.MinInt64,
	} {
		log, err := grade.ReadLog(">>>>> Test Exit Code:"+text, "parse_log_pytest", logs.InstanceInfo{})
		if err != nil || log.ExitCode == nil || *log.ExitCode != want {
			t.Errorf("%q: %v, error %v; want %d", text, log.ExitCode, err, want)
		}
	}
	for _, text := range []string{"", ">>>>> Test Exit Code:", ">>>>> Test Exit Code: --1", ">>>>> Test Exit Code: \u00b2", ">>>>> Test Exit Code -1"} {
		if log, err := grade.ReadLog(text, "parse_log_pytest", logs.InstanceInfo{}); err != nil || log.ExitCode != nil {
			t.Errorf("%q: an exit code, or error %v", text, err)
		}
	}
}

func TestNoVerdict(t *testing.T) {
	if _, err := grade.ReadLog(marked("x"), "parse_log_nope", logs.InstanceInfo{}); !errors.Is(err, logs.ErrUnknownParser) {
		t.Errorf("error %v, want ErrUnknownParser", err)
	}
	_, err := grade.ReadLog(marked("FAIL:\n"), "parse_log_django", logs.InstanceInfo{})
	if _, ok := errors.AsType[*logs.CrashError](err); !ok {
		t.Errorf("error %v, want a crash", err)
	}
}

// Names that are truncated within their brackets: the name in the row is the beginning of
// the name in the log.
func TestTruncatedNames(t *testing.T) {
	var tests logs.Tests
	for i := range 200_000 {
		tests.Set(fmt.Sprintf("t.py::test[%d x]", i), logs.Passed)
	}
	tests.Set("t.py::test[last y]", logs.Failed)
	r := grade.TestSpec{EvalType: grade.PassAndFail}
	for i := range 2000 {
		r.FailToPass = append(r.FailToPass, fmt.Sprintf("t.py::test[%d", 100_000+i))
	}
	r.PassToPass = []string{"t.py::test[", "t.py::test[last", "t.py::test[199999 x]", "t.py::test[none"}
	start := time.Now()
	got := r.CompareTests(&tests)
	assert.Equal(t, len(r.FailToPass), len(got.FailToPass.Success))
	assert.Equal(t, "[t.py::test[199999 x]]", fmt.Sprint(got.PassToPass.Success), "successes")
	if took := time.Since(start); took > 2*time.Minute { // comparing all names with each other takes minutes
		t.Errorf("it took %v", took)
	}
}

func TestOtherWordsCountAsNeither(t *testing.T) {
	var tests logs.Tests
	tests.Set("a", "XFAILED")
	tests.Set("b", "ERROR:")
	r := grade.TestSpec{EvalType: grade.PassAndFail, FailToPass: []string{"a"}, PassToPass: []string{"b"}}
	got := r.CompareTests(&tests)
	if n := len(got.FailToPass.Success) + len(got.FailToPass.Failure) + len(got.PassToPass.Success) + len(got.PassToPass.Failure); n != 0 {
		t.Errorf("%d tests were counted: %+v", n, got)
	}
	if got.Resolution() != grade.ResolvedFull { // unknown statuses are not failures, as in the harness
		t.Errorf("resolution %s", got.Resolution())
	}
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"Error: Failed to launch the browser":   "environment browser_launch_failed",
		"Failed to connect to the bus":          "environment browser_launch_failed",
		"cannot open display":                   "environment display_unavailable",
		"Missing X server":                      "environment display_unavailable",
		"unable to open X display":              "environment display_unavailable",
		"fork: Cannot allocate memory":          "environment out_of_memory",
		"java.lang.OutOfMemoryError":            "environment out_of_memory",
		"x\nKilled\ny":                          "environment out_of_memory",
		"Killed":                                "environment out_of_memory",
		"x\rKilled\r\ny":                        "environment out_of_memory",
		"Killed by":                             "",
		"was Killed\n":                          "",
		"KilledKilled\nKilled":                  "environment out_of_memory",
		"Error response from daemon":            "environment container_unavailable",
		"Cannot connect to the Docker daemon":   "environment container_unavailable",
		"Could not resolve host":                "environment network_unreachable",
		"Temporary failure in name resolution":  "environment network_unreachable",
		"Cannot find module 'x'":                "ambiguous missing_module",
		"code: 'MODULE_NOT_FOUND'":              "ambiguous missing_module",
		"ModuleNotFoundError: x":                "ambiguous missing_module",
		"no tests ran in 0.1s":                  "ambiguous no_tests_collected",
		"collected 0 items":                     "ambiguous no_tests_collected",
		"Timeout error: 1800 seconds exceeded.": "ambiguous tests_timed_out",
		"Timeout error:  seconds exceeded":      "",
		"Timeout error: x seconds exceeded":     "",
		"Timeout error: Timeout error: \u0669 seconds exceeded":     "ambiguous tests_timed_out",
		"collected 0 items\nModuleNotFoundError":                    "ambiguous missing_module",
		"ModuleNotFoundError\nTemporary failure in name resolution": "environment network_unreachable",
	} {
		f := grade.ClassifyFailure(text)
		assert.Equal(t, want, strings.TrimSpace(fmt.Sprintf("%s %s", f.Tier, f.Reason)), "%q", text)
	}
	if f := grade.ClassifyFailure("Ki", "lled"); f != (grade.Failure{}) {
		t.Errorf("texts run together: %+v", f)
	}
	assert.Equal(t, "out_of_memory", grade.ClassifyFailure("no tests ran", "Killed").Reason, "the second text has the first reason")
}

// LogCounts counts the tests of a log even if the verdict does not use them.
func TestLogCounts(t *testing.T) {
	one := int64(1)
	for name, test := range map[string]struct {
		kind  grade.EvalType
		log   string
		found bool
		want  grade.LogCounts
	}{
		"passed":        {grade.PassAndFail, "PASSED a\nPASSED b\n", true, grade.LogCounts{Passed: 2, Listed: 2}},
		"failed":        {grade.PassAndFail, "FAILED a\nERROR b\nPASSED c\n", true, grade.LogCounts{Failed: 2, AnyFailed: true}},
		"missing":       {grade.PassAndFail, "SKIPPED a\n", true, grade.LogCounts{}},
		"another":       {grade.PassAndFail, "PASSED a\nPASSED b\nFAILED other\n", true, grade.LogCounts{Passed: 2, Listed: 2, AnyFailed: true}},
		"denied":        {grade.PassAndFail, "PASSED a\nXFAIL b\n>>>>> Test Exit Code: 1\n", false, grade.LogCounts{Passed: 2, Listed: 2}},
		"overwritten":   {grade.PassAndFail, "FAILED a\nPASSED a\nPASSED b\n", true, grade.LogCounts{Passed: 2, Listed: 2, Overwritten: "a"}},
		"silent":        {grade.FailOnly, "Tests: 3\n>>>>> Test Exit Code: 1\n", true, grade.LogCounts{Passed: 2}},
		"nothing":       {grade.PassAndFail, ">>>>> Test Exit Code: 1\n", false, grade.LogCounts{}},
		"denied, other": {grade.FailOnly, "PASSED c\n>>>>> Test Exit Code: 1\n", false, grade.LogCounts{Passed: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := grade.TestSpec{InstanceID: "x", Parser: "parse_log_pytest", EvalType: test.kind, FailToPass: []string{"a"}, PassToPass: []string{"b"}}
			v, err := r.Grade(marked(test.log))
			if err != nil || v.Report.Applied != test.found || v.LogCounts != test.want {
				t.Errorf("%+v (found %t, error %v), want %+v", v.LogCounts, v.Report.Applied, err, test.want)
			}
			if strings.Contains(test.log, "Code: 1") && (v.ExitCode == nil || *v.ExitCode != one) {
				t.Errorf("exit code %v", v.ExitCode)
			}
		})
	}
}

// FuzzGrade checks that every log leads to an error or to a verdict whose report is valid
// JSON, and that a log without both markers never resolves the instance.
func FuzzGrade(f *testing.F) {
	for i, text := range []string{
		"", marked("PASSED t::a\n"), marked("t::a ... ok\n"), marked("FAIL:\n"), marked("  3 passing\n") + ">>>>> Test Exit Code: 1",
		"Killed", "Timeout error: 5 seconds exceeded", marked("PASSED t::p[a b]\nFAILED t::p[a c]\n"), ">>>>> Tests Errored",
	} {
		f.Add(text, uint(i), i%2 == 0)
	}
	names := logs.Names()
	f.Fuzz(func(t *testing.T, text string, parser uint, failOnly bool) {
		r := grade.TestSpec{
			InstanceID: "x__x-2006", Version: "3.0", Parser: names[parser%uint(len(names))], EvalType: grade.PassAndFail,
			FailToPass: []string{"t::a", "t::p[a"}, PassToPass: []string{"t::b"},
		}
		if failOnly {
			r.EvalType = grade.FailOnly
		}
		v, err := r.Grade(text)
		if err != nil {
			return
		}
		if !json.Valid(v.Report.JSON(r.InstanceID)) {
			t.Errorf("a report that is not JSON: %s", v.Report.JSON(r.InstanceID))
		}
		whole := strings.Contains(text, grade.StartMarker) && strings.Contains(text, grade.EndMarker)
		if v.Report.Applied && !whole || v.Report.Resolved != (v.Resolution == grade.ResolvedFull) || v.Report.Resolved && !v.Report.Applied {
			t.Errorf("a verdict that cannot be: %+v", v)
		}
	})
}
