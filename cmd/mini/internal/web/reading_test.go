package web

import (
	"strings"
	"testing"

	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// The list of steps shows the thought or, without one, the line of the command that says what it does.
func TestOutline(t *testing.T) {
	reply := func(text string) *timeline.Item { return &timeline.Item{Kind: timeline.Reply, Text: text} }
	command := func(text string) *timeline.Item { return &timeline.Item{Kind: timeline.Command, Text: text} }
	for want, items := range map[string][]*timeline.Item{
		"I look at the file.":           {reply("THOUGHT: I look at the file.\nThen I edit it."), command("cat x")},
		"A thought.":                    {{Kind: timeline.Reasoning, Text: "long"}, reply("\n A thought."), command("ls")},
		"ls -l":                         {command("ls -l")},
		"grep -n x y.py":                {command("cd /testbed && grep -n x y.py")},
		"print(f())":                    {command("python3 - <<'PY'\nimport os\nfrom a import f\n\nprint(f())\nPY")},
		"cat > x.py <<'EOF'":            {command("cat > x.py <<'EOF'\nx = 1\nEOF")},
		"pytest -q":                     {command("set -e\n# the tests\nexport A=1\npytest -q")},
		"cd /testbed":                   {reply(""), command("cd /testbed")},
		"model call failed: 500":        {{Kind: timeline.Note, Text: "note"}, {Kind: timeline.Problem, Text: "model call failed: 500"}},
		strings.Repeat("x", 80) + "...": {command(strings.Repeat("x", 200))},
	} {
		if got := outlineOf(&timeline.Step{Items: items}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Patches are compared by the lines that they change.
func TestPatchDifference(t *testing.T) {
	const gold = "diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@ def f():\n a\n-old\n+new\n b\n"
	moved := strings.NewReplacer("-1,3", "-7,3", "1..2", "3..4", " a\n", " other\n").Replace(gold)
	other := strings.Replace(gold, "+new", "+newer", 1)
	for name, tt := range map[string]struct{ first, second, want string }{
		"equal":   {gold, gold, ""},
		"moved":   {gold, moved, ""},
		"differs": {gold, other, "@@ -1,3 +1,3 @@\n diff --git a/x.py b/x.py\n -old\n-+new\n++newer\n"},
		"empty":   {"", gold, "@@ -1,0 +1,3 @@\n+diff --git a/x.py b/x.py\n+-old\n++new\n"},
		"long":    {gold, "@@ -0,0 +1,2000 @@\n" + strings.Repeat("+line\n", 2000), ""},
	} {
		if got := patchDifference(tt.first, tt.second); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The part of the log below the heading of a failed test is found.
func TestLogParts(t *testing.T) {
	const log = `collected 3 items
=================================== FAILURES ===================================
_______________________________ TestX.test_one ________________________________
    assert 1 == 2
________________________________ test_two[a-b] _________________________________
    assert two
=========================== short test summary info ============================
FAILED tests/test_a.py::TestX::test_one
======================================================================
FAIL: test_three (tests.test_b.TestB)
----------------------------------------------------------------------
AssertionError: three

======================================================================
--- FAIL: TestFour (0.01s)
    four_test.go:3: four
FAIL
`
	parts := newLogParts(log)
	for test, want := range map[string]string{
		"tests/test_a.py::TestX::test_one": "assert 1 == 2", "tests/test_a.py::test_two[a-b]": "assert two",
		"test_three (tests.test_b.TestB)": "AssertionError: three", "TestFour": "four_test.go:3: four",
		"tests/test_a.py::test_five": "", "": "",
	} {
		got := parts.of(test)
		if !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "summary") || strings.Count(got, "assert") > 1 {
			t.Errorf("%s: %q", test, got)
		}
	}
	if part := newLogParts("FAIL: " + strings.Repeat("test_long\n", 100_000)).of("test_long"); strings.Count(part, "\n") > maxPartLines {
		t.Errorf("a part has %d lines", strings.Count(part, "\n"))
	}
}

// A reason says what went wrong, and whether the agent did it.
func TestReason(t *testing.T) {
	for want, tt := range map[string]struct {
		class   trajectories.Class
		status  string
		verdict verdicts.Class
		ours    bool
	}{
		"":                                    {trajectories.Submitted, "Submitted", verdicts.Resolved, false},
		"2 of 13 tests failed":                {trajectories.Submitted, "Submitted", verdicts.Unresolved, false},
		"2 of 13 tests failed, limit of time": {trajectories.Limit, "TimeExceeded", verdicts.Unresolved, false},
		"the patch is empty, limit of steps or cost":   {trajectories.Limit, "LimitsExceeded", verdicts.Empty, false},
		"the patch does not apply":                     {trajectories.Submitted, "Submitted", verdicts.ApplyFailed, false},
		"not evaluated":                                {trajectories.Submitted, "Submitted", "", false},
		"no result, the sandbox failed: ContainerDied": {trajectories.Environment, "ContainerDied", "", true},
		"no verdict, the machine failed":               {trajectories.Submitted, "Submitted", verdicts.Infrastructure, true},
		"some class":                                   {trajectories.Submitted, "Submitted", "some_class", false},
	} {
		r := &runs.Result{Class: tt.class, ExitStatus: tt.status}
		if tt.verdict != "" {
			class := string(tt.verdict)
			r.Verdict = &class
		}
		v := &verdicts.Verdict{Record: verdicts.Record{Runs: []verdicts.TestRun{{Purpose: verdicts.ForVerdict, Passed: 11, Failed: 2}}}}
		if why := newReason(r, v); why.Text != want || why.Ours != tt.ours {
			t.Errorf("%q, %v; want %q, %v", why.Text, why.Ours, want, tt.ours)
		}
		if c := newCell(1, r); tt.ours != (c.Class == 'I') {
			t.Errorf("%s: the letter is %s", want, c.Letter())
		}
	}
}

// The page of an attempt names the limit that ended it, and the steps that are not in its list.
func TestAttemptEnd(t *testing.T) {
	config := []byte(`{"agent":{"step_limit":4,"cost_limit":0.15,"wall_time_limit_seconds":90}}`)
	for want, o := range map[string]trajectories.Outcome{
		"step limit 4 reached":     {Class: trajectories.Limit, ExitStatus: "LimitsExceeded", Steps: 4},
		"cost limit $0.15 reached": {Class: trajectories.Limit, ExitStatus: "LimitsExceeded", Steps: 3, Cost: 0.2},
		"time limit 1m30s reached": {Class: trajectories.Limit, ExitStatus: "TimeExceeded", Steps: 4},
		"":                         {Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 4},
	} {
		if got := limitOf(&timeline.Timeline{Header: trajectories.Header{Config: config}, Outcome: &o}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	tl := &timeline.Timeline{Steps: make([]*timeline.Step, 3), FailedCalls: 1}
	tl.Totals.Children.Steps = 7
	for steps, want := range map[int]string{
		2: "", 9: "7 of subagents", 10: "7 of subagents, 1 failed call", 12: "7 of subagents, 1 failed call, 2 replies not in the journal",
	} {
		if got := unlisted(steps, tl); got != want {
			t.Errorf("%d steps: %q, want %q", steps, got, want)
		}
	}
}
