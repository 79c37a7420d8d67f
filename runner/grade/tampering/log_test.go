package tampering_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/grade/tampering"
)

const ordinaryRow = `cd /testbed
git apply -v - <<'EOF_114329324912'
+: '>>>>> Start Test Output' is a line of a patch

EOF_114329324912
: '>>>>> Start Test Output'
pytest
: '>>>>> End Test Output'
git checkout x`

const isolatedRow = `cd /testbed
{ set +x; } 2>/dev/null
echo '>>>>> Start Test Output'
(make test) 2>/tmp/log | cat
echo '>>>>> End Test Output'
cat /tmp/log >&2 || true
set -x
rm -f x`

const ordinaryLog = `+ cd /testbed
+ : '>>>>> Start Test Output'
+ pytest
1 passed+ SWEBENCH_TEST_EXIT_CODE=0
+ : '>>>>> End Test Output'
+ echo '>>>>> Test Exit Code: 0'
>>>>> Test Exit Code: 0
+ git checkout x
`

const isolatedLog = `+ cd /testbed
>>>>> Start Test Output
ok
>>>>> End Test Output
>>>>> Test Exit Code: 0
+ rm -f x
`

func TestLog(t *testing.T) {
	// The cases replace this by the output of tests.
	put := func(log, text string) string { return strings.Replace(log, "1 passed", "1 passed\n"+text, 1) }
	tests := map[string]struct {
		row, log string
		want     []string
	}{
		"ordinary":       {ordinaryRow, ordinaryLog, nil},
		"isolated":       {isolatedRow, isolatedLog, nil},
		"windows":        {ordinaryRow, strings.ReplaceAll(ordinaryLog, "\n", "\r\n"), nil},
		"timed out":      {ordinaryRow, ordinaryLog[:60], nil},
		"nothing":        {ordinaryRow, "", nil},
		"trace in line":  {ordinaryRow, strings.Replace(ordinaryLog, "0\n+ : '>>>>> End", "0+ : '>>>>> End", 1), nil},
		"own script":     {"make", "+ make\n", nil},
		"other words":    {ordinaryRow, put(ordinaryLog, ">>>>> All Tests Passed\n"), nil},
		"printed start":  {ordinaryRow, put(ordinaryLog, ">>>>> Start Test Output\n"), []string{"marker_repeated", "marker_printed"}},
		"printed end":    {ordinaryRow, put(ordinaryLog, ">>>>> End Test Output"), []string{"marker_repeated", "marker_printed"}},
		"printed code":   {ordinaryRow, put(ordinaryLog, ">>>>> Test Exit Code: 0\n"), []string{"marker_repeated", "marker_printed"}},
		"forged trace":   {ordinaryRow, put(ordinaryLog, "+ : '>>>>> End Test Output'\n"), []string{"marker_repeated"}},
		"nested shell":   {ordinaryRow, put(ordinaryLog, "++ : '>>>>> Start Test Output'\n"), []string{"marker_repeated"}},
		"isolated twice": {isolatedRow, isolatedLog + ">>>>> End Test Output\n", []string{"marker_repeated", "marker_printed"}},
		"killed the shell": { // and printed its remaining output
			ordinaryRow, strings.Replace(ordinaryLog, "+ : '>>>>> End Test Output'", ">>>>> End Test Output", 1), []string{"marker_printed"},
		},
		"in the diff of the patch": {
			ordinaryRow, "+print('>>>>> End Test Output')\n" + ordinaryLog, []string{"marker_repeated", "marker_printed"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := script.For(datasets.Instance{ID: "a", EvalScript: test.row})
			require.NoError(t, err)
			var got []string
			zero := 0
			for _, f := range tampering.CheckLog(test.log, s.Text, tampering.LogResult{ExitCode: &zero}) {
				got = append(got, string(f.Flag))
			}
			assert.Equal(t, test.want, got, "the result")
		})
	}
}

func TestExitDisagrees(t *testing.T) {
	code := func(n int) *int { return &n }
	with := func(code string) string {
		return strings.NewReplacer("CODE=0", "CODE="+code, "Code: 0", "Code: "+code).Replace(ordinaryLog)
	}
	list := strings.Replace(ordinaryRow, "\npytest\n", "\nnpm run build ; npm test\n", 1)
	tests := map[string]struct {
		row, log string
		outcome  tampering.LogResult
		want     string
	}{
		"passed, zero":    {ordinaryRow, ordinaryLog, tampering.LogResult{Passed: 3, ExitCode: code(0)}, ""},
		"failed, one":     {ordinaryRow, with("1"), tampering.LogResult{Passed: 3, Failed: 1, AnyFailed: true, ExitCode: code(1)}, ""},
		"other failed":    {ordinaryRow, with("1"), tampering.LogResult{Passed: 3, AnyFailed: true, ExitCode: code(1)}, ""},
		"nothing ran":     {ordinaryRow, with("4"), tampering.LogResult{ExitCode: code(4)}, ""},
		"passed, killed":  {ordinaryRow, with("137"), tampering.LogResult{Passed: 3, ExitCode: code(137)}, "3 tests passed and none failed, but the tests exited with 137"},
		"failed, zero":    {ordinaryRow, ordinaryLog, tampering.LogResult{Passed: 3, Failed: 1, AnyFailed: true, ExitCode: code(0)}, "1 tests failed, but the tests exited with 0"},
		"noise, zero":     {ordinaryRow, ordinaryLog, tampering.LogResult{Passed: 3, AnyFailed: true, ExitCode: code(0)}, ""}, // the output of passing tests may look like this
		"of a list, zero": {list, ordinaryLog, tampering.LogResult{Failed: 1, AnyFailed: true, ExitCode: code(0)}, ""},
		"of a list, one":  {list, with("1"), tampering.LogResult{Passed: 1, ExitCode: code(1)}, "1 tests passed and none failed, but the tests exited with 1"},
		"trace denies": {
			ordinaryRow, strings.Replace(ordinaryLog, "CODE=0", "CODE=1", 1),
			tampering.LogResult{Passed: 3, ExitCode: code(0)},
			"the log has different exit codes of the tests: 0, 1",
		},
		"digits of elsewhere": {
			ordinaryRow, with("1"),
			tampering.LogResult{Passed: 3, AnyFailed: true, ExitCode: code(0)},
			"the log has different exit codes of the tests: 1, 0",
		},
		"no code": {
			ordinaryRow, strings.ReplaceAll(ordinaryLog, "Test Exit Code: 0", ""),
			tampering.LogResult{Passed: 3},
			"the script prints the exit code of the tests, but the log does not have it",
		},
		"broken off": {ordinaryRow, ordinaryLog[:60], tampering.LogResult{Passed: 3}, ""},
		"own script": {"make", "+ make\n>>>>> End Test Output", tampering.LogResult{Passed: 3}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := script.For(datasets.Instance{ID: "a", EvalScript: test.row})
			require.NoError(t, err)
			var got []string
			for _, f := range tampering.CheckLog(test.log, s.Text, test.outcome) {
				if f.Flag == tampering.ExitDisagrees {
					got = append(got, f.Detail)
				}
			}
			assert.Equal(t, test.want, strings.Join(got, "\n"))
		})
	}
}

// The results of a log are compared with the summary that the test runner prints last.
func TestSummaryDisagrees(t *testing.T) {
	const (
		missing = "3 tests passed, but the test runner did not print its summary"
		more    = "3 tests passed, but the test runner counts 2"
		hidden  = "no test failed, but the test runner counts 1"
	)
	passed := tampering.LogResult{Listed: 3}
	failed := tampering.LogResult{Listed: 3, AnyFailed: true}
	for name, test := range map[string]struct {
		command, log string
		result       tampering.LogResult
		want         string
	}{
		"pytest":             {"pytest -rA", "=== 3 passed, 2 warnings in 0.12s ===", passed, ""},
		"pytest, failed":     {"pytest -rA", "=== 1 failed, 3 passed in 61.30s (0:01:01) ===", failed, ""},
		"pytest, quiet":      {"pytest -q", "2 passed, 1 xfailed in 0.12 seconds", passed, ""},
		"pytest, skipped":    {"tox -epy39 -v -- x", "==== 1 passed, 2 skipped in 0.12s ====", passed, ""},
		"pytest, ended":      {"pytest -rA", "PASSED a\nPASSED b in 3s", passed, missing},
		"pytest, no results": {"pytest -rA", "ImportError", tampering.LogResult{}, ""},
		"pytest, more":       {"pytest -rA", "=== 2 passed, 1 failed in 0.12s ===", failed, more},
		"pytest, hidden":     {"pytest -rA", "=== 3 passed, 1 error in 0.12s ===", passed, hidden},
		"pytest, of a test":  {"pytest -rA", "=== 1 failed in 0.1s ===\n=== 3 passed in 0.12s ===", passed, ""},
		"none ran":           {"pytest -rA", "=== no tests ran in 0.01s ===", tampering.LogResult{Listed: 1}, "1 tests passed, but the test runner counts 0"},
		"django":             {"./tests/runtests.py a", "Ran 3 tests in 0.1s\n\nOK (skipped=1, expected failures=1)", passed, ""},
		"django, subtests":   {"./tests/runtests.py a", "Ran 4 tests in 0.1s\n\nFAILED (failures=4)", failed, ""},
		"django, more":       {"./tests/runtests.py a", "Ran 3 tests in 0.1s\n\nFAILED (errors=1)", failed, more},
		"django, hidden":     {"./tests/runtests.py a", "Ran 9 tests in 0.1s\n\nFAILED (failures=1)", passed, hidden},
		"django, ended":      {"./tests/runtests.py a", "test_a (x.Y) ... ok\nRan out of memory", passed, missing},
		"sympy":              {"bin/test -C a", "= tests finished: 2 passed, 1 skipped, 1 expected to fail, in 0.1 seconds =", passed, ""},
		"sympy, hidden":      {"bin/test -C a", "= tests finished: 3 passed, 1 exceptions, in 0.1 seconds =", passed, hidden},
		"sympy, ended":       {"bin/test -C a", "test_a ok", passed, missing},
		"cargo, two":         {"cargo test", "test result: ok. 1 passed; 0 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed;", passed, ""},
		"cargo, more":        {"cargo test", "test result: FAILED. 2 passed; 1 failed; 0 ignored", failed, more},
		"cargo, ended":       {"cargo test", "test a ... ok", passed, missing},
		"go":                 {"go test -v ./...", "PASS\nok  \ta/b\t0.012s", passed, ""},
		"go, cached":         {"go test -v ./...", "ok  \ta/b\t(cached)", passed, ""},
		"go, ended":          {"go test -v ./...", "--- PASS: TestA (0.00s)\nok", passed, missing},
		"jest":               {"npx jest", "Tests:       1 failed, 3 passed, 4 total", failed, ""},
		"jest, more":         {"npx jest", "Tests:       1 failed, 2 passed, 3 total", failed, more},
		"vitest, hidden":     {"npx vitest run", "      Tests  1 failed | 3 passed (4)", passed, hidden},
		"phpunit":            {"vendor/bin/phpunit", "OK (3 tests, 9 assertions)", passed, ""},
		"phpunit, more":      {"vendor/bin/phpunit", "Tests: 3, Assertions: 5, Failures: 1.", failed, more},
		"overwritten":        {"make check", "", tampering.LogResult{Overwritten: "a"}, `the log has "a" first as failed and then as passed`},
		"unknown":            {"make check", "1 failed", passed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			row := ": '>>>>> Start Test Output'\n" + test.command + "\n: '>>>>> End Test Output'"
			var got []string
			for _, f := range tampering.CheckLog("PASSED a\n"+test.log+"\nend\n", row, test.result) {
				if f.Flag == tampering.SummaryDisagrees {
					got = append(got, f.Detail)
				}
			}
			assert.Equal(t, test.want, strings.Join(got, "\n"))
		})
	}
}
