package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

func call() record { return record{trajectories.TypeCall, trajectories.Call{Cost: 0.01}} }

func reply(text string) record {
	return record{trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: model.Assistant, Content: text}}}
}

func execution(command, output string, code int, change ...func(*trajectories.Execution)) record {
	e := trajectories.Execution{Command: command, Output: []byte(output), ExitCode: code, Duration: trajectories.Seconds(1500 * time.Millisecond)}
	for _, f := range change {
		f(&e)
	}
	return record{trajectories.TypeExecution, e}
}

func TestDetail(t *testing.T) {
	timeout := func(e *trajectories.Execution) {
		e.TimedOut, e.Exception = true, "the command took longer than 60 seconds"
	}
	ended := outcome(trajectories.Environment, "ContainerDied", 5, failed("run command: ContainerDied: \x1b[2Jexit status 137", "give it more memory: -c environment.memory=8g"), networkProof("unproven: 10.96.0.1:443 \x1b[2Janswers"))
	steps := []record{
		call(), reply("the first"), execution("not shown", "not shown", 0),
		call(), reply("second"), execution("python -m pytest\n# and\n# a\n# long\n# script\n# of\n# many\n# lines", strings.Repeat("line\x1b[31m of output\n", 500)+"the end\n", 1),
		call(), reply("I think that\nnothing is to be done."),
		call(), reply("third"), execution("sleep 100", "漢字"+strings.Repeat("wide ", 40), -1, timeout),
	}
	tests := []struct {
		name string
		make func(t *testing.T)
	}{
		{"failed", func(t *testing.T) {
			writeJournal(t, "run", "a", 1, began, outcome(trajectories.Environment, "ContainerDied", 2))
			writeJournal(t, "run", "a", 2, began, append(steps, ended)...)
			writeFile(t, "run/a/a.traj.json", "{}")
		}},
		{"torn", func(t *testing.T) {
			path := writeJournal(t, "run", "a", 1, began, append(steps, record{trajectories.TypeCall, trajectories.Call{Error: "429 slow down"}})...)
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString(`{"id":99,"par`); err != nil {
				t.Fatal(err)
			}
		}},
		{"result", func(t *testing.T) {
			writeJournal(t, "run", "a", 1, began, call(), outcome(trajectories.Limit, "LimitsExceeded", 1, func(o *trajectories.Outcome) {
				o.Autosubmitted, o.Warnings = true, []string{"the patch is not text"}
			}, networkProof("proven: DNS, API server, 169.254.169.254")))
			writeJournal(t, "run", "a", 2, began, call())
		}},
		{"pending", func(t *testing.T) {
			asked := record{trajectories.TypeMessage, trajectories.Message{
				Message: model.Message{Role: model.Assistant, Content: "let me wait"}, Cause: trajectories.CauseReply, Actions: []string{"sleep 100"},
			}}
			writeJournal(t, "run", "a", 1, began, call(), asked)
		}},
		{"files-gone", func(t *testing.T) {
			writeFile(t, "run/results.json", `{"format":"mini-1","instances":{"a":{"class":"submitted","exit_status":"Submitted","attempt":1,"attempts":1,"steps":4,"cost":0.5,"patch_bytes":12}}}`)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			back := inTemporary(t)
			manifest(t, "run", 1, "openai", session(time.Minute, 0))
			tt.make(t)
			t.Setenv("TZ", "")
			d, err := report.NewDetail(read(t, "run"), "a", began)
			back()
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.AttemptList {
				d.AttemptList[i].Start = time.Time{} // shown in the local time zone
			}
			golden(t, "detail-"+tt.name+".txt", shown(t, d.Doc(), 80))
			if tt.name == "failed" {
				golden(t, "detail.json", indented(t, d))
			}
		})
	}
}

// A detail has the verdicts on the instance, with their evaluations and the paths of their logs.
func TestDetailVerdicts(t *testing.T) {
	back := inTemporary(t)
	writeJournal(t, "run", "a", 1, began, outcome(trajectories.Submitted, "Submitted", 3))
	preds := map[string]trajectories.Prediction{"a": {InstanceID: "a", Model: "gpt-5-mini", Patch: "diff"}}
	if err := trajectories.WritePredictions("run/preds.json", preds); err != nil {
		t.Fatal(err)
	}
	run := read(t, "run")
	own := report.ReadPredictions(run)
	without := false
	found := verdicts.Set{Dir: "run"}
	for _, r := range []verdicts.Record{
		verdict("a", verdicts.Resolved, func(r *verdicts.Record) {
			r.RunID, r.Runs[0].Start = "second\x1b[2J", began.Add(time.Hour)
			r.Runs[0].Passed, r.Runs[0].Dir = 37, "logs/run_evaluation/second/gpt-5-mini/a"
			r.Flags = slices.Repeat([]tampering.Finding{{Flag: tampering.TestFile, File: "tests/\x1b[2Jtest_a.py"}}, 7)
			r.ResolvedWithoutSuspect = &without
		}),
		verdict("a", verdicts.Unresolved, because("2 of 37 tests failed"), func(r *verdicts.Record) { r.Basis.PatchSHA256 = "of another patch" }),
		verdict("a", verdicts.Infrastructure, because("the disk is full"), func(r *verdicts.Record) {
			r.Model, r.Hint, r.Runs = "other/agent", "make room", nil
		}),
		verdict("a", verdicts.TimedOut, func(r *verdicts.Record) { r.Model = evaluate.GoldModel }),
		verdict("b", verdicts.Resolved),
	} {
		found.Verdicts = append(found.Verdicts, verdicts.Verdict{Record: r})
	}
	d, err := report.NewDetail(run, "a", began)
	if err != nil {
		t.Fatal(err)
	}
	back()
	d.AttemptList, d.LastSteps = nil, nil
	d.AddVerdicts(found, own)
	golden(t, "detail-verdicts.txt", shown(t, d.Doc(), 80))
	shown(t, d.Doc(), 50)

	only, ok := report.NewVerdictsDetail(verdicts.Set{Dir: "run", Verdicts: found.Verdicts[3:]}, "a")
	if want := "a\nverdict: timed out\n  evaluation first of gold, 1m00s\n  quarantined here (gold: timed out)\n"; !ok ||
		shown(t, only.Doc(), 80) != want {
		t.Errorf("of a baseline: %v %+v", ok, only)
	}
	if _, ok := report.NewVerdictsDetail(found, "nobody"); ok {
		t.Error("verdicts on an instance that has none")
	}
}

// A detail lists the first failed tests of each run with a different result. The names are
// untrusted.
func TestDetailFailedTests(t *testing.T) {
	back := inTemporary(t)
	writeJournal(t, "run", "a", 1, began, outcome(trajectories.Submitted, "Submitted", 3))
	var failed []string
	for i := range 12 {
		failed = append(failed, fmt.Sprintf("tests/test_%d.py::test_\x1b[2J", i))
	}
	files := func(n int, failToPass, passToPass []string) string {
		type sorted map[string][]string
		data, err := json.Marshal(map[string]any{"a": map[string]any{"tests_status": map[string]sorted{
			"FAIL_TO_PASS": {"success": {"passes"}, "failure": failToPass}, "PASS_TO_PASS": {"failure": passToPass},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		dir := fmt.Sprintf("logs/%d", n)
		writeFile(t, filepath.Join("run", dir, "report.json"), string(data))
		return dir
	}
	run := func(purpose verdicts.Purpose, class verdicts.Class, dir string) verdicts.TestRun {
		return verdicts.TestRun{Purpose: purpose, Class: class, Reason: "13 of 14 tests failed", Failed: 13, Passed: 1, Dir: dir, Seconds: 2}
	}
	graded := func(runs ...verdicts.TestRun) report.Detail {
		d, err := report.NewDetail(read(t, "run"), "a", began)
		if err != nil {
			t.Fatal(err)
		}
		d.AttemptList, d.LastSteps = nil, nil
		d.AddVerdicts(verdicts.Set{Dir: "run", Verdicts: []verdicts.Verdict{{Record: verdict("a", verdicts.Unresolved, because("13 of 14 tests failed"), func(r *verdicts.Record) {
			r.Runs = runs
		})}}}, nil)
		return d
	}
	first := run(verdicts.ForVerdict, verdicts.Unresolved, files(1, []string{"tests/test_x.py::test_mended"}, failed))
	again := run(verdicts.ForRerun, verdicts.Unresolved, files(2, []string{"tests/test_x.py::test_mended"}, failed))
	other := run(verdicts.ForRerun, verdicts.Unresolved, files(3, nil, failed[:1]))
	whole := run(verdicts.WithoutSuspect, verdicts.Resolved, files(4, nil, nil))
	whole.Reason, whole.Failed, whole.Passed = "", 0, 14

	one := graded(first)
	if got := one.Verdicts[0].FailedTests; got == nil || !slices.Equal(got.PassToPass, failed) || len(got.FailToPass) != 1 {
		t.Errorf("of one run: %+v", got)
	}
	several := graded(first, again, other, whole)

	// A report outside the folder is not read, and an invalid one is reported.
	writeFile(t, "elsewhere/report.json", `{"a":{"tests_status":{"FAIL_TO_PASS":{"failure":["secret"]}}}}`)
	if err := os.Symlink("../elsewhere", "run/link"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "run/torn/report.json", `{"a":`)
	for _, dir := range []string{"link", "../elsewhere", "torn"} {
		if d := graded(run(verdicts.ForVerdict, verdicts.Unresolved, dir)); d.Verdicts[0].FailedTests != nil || len(d.Unreadable) != 1 {
			t.Errorf("%s: %+v, not read %q", dir, d.Verdicts[0].FailedTests, d.Unreadable)
		}
	}

	back()
	golden(t, "detail-failed-tests.txt", shown(t, one.Doc(), 80))
	golden(t, "detail-runs.txt", shown(t, several.Doc(), 80))
	shown(t, several.Doc(), 40)
}

// Each repetition has its own verdict, and the predictions are those of the first.
func TestDetailRepetitions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for n, patch := range []string{"diff", "other diff", "third"} {
		h := record{trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format, InstanceID: "a", Attempt: n + 1, Repetition: n + 1}}
		o := outcome(trajectories.Submitted, "Submitted", 3, func(o *trajectories.Outcome) { o.Submission = []byte(patch) })
		writeJournalWith(t, dir, "a", n+1, began, h, o)
	}
	of := func(repetition, size int) func(*verdicts.Record) {
		return func(r *verdicts.Record) { r.Repetition, r.Basis.PatchBytes = repetition, size }
	}
	set := verdicts.Set{Dir: dir, Verdicts: []verdicts.Verdict{
		{Record: verdict("a", verdicts.TimedOut, of(3, 99))}, // on a patch of an earlier try
		{Record: verdict("a", verdicts.Unresolved, of(2, len("other diff")))},
		{Record: verdict("a", verdicts.Resolved)},
	}}
	d, err := report.NewDetail(read(t, dir), "a", began)
	if err != nil {
		t.Fatal(err)
	}
	d.AddVerdicts(set, report.Predictions{"a": {InstanceID: "a", Model: "gpt-5-mini", Patch: "diff"}})
	text := shown(t, d.Doc(), 80)
	var heads []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "verdict") {
			heads = append(heads, strings.TrimSpace(line))
		}
	}
	want := []string{"verdict (#1): resolved", "verdict (#2): unresolved", "verdict (#3) on an earlier submission: timed out"}
	if !slices.Equal(heads, want) {
		t.Errorf("%q\n%s", heads, text)
	}
}

func TestUnknownInstance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for _, id := range []string{"django__django-11099", "django__django-11100", "sympy__sympy-5", "evil\x1b[31m"} {
		writeJournal(t, dir, id, 1, began)
	}
	run := read(t, dir)
	run.Dir = "run"
	for id, want := range map[string]string{
		"django":               `run has no instance "django"; did you mean django__django-11099 or django__django-11100?`,
		"django__django-1109":  `run has no instance "django__django-1109"; did you mean django__django-11099 or django__django-11100?`,
		"Sympy__sympy-6":       `run has no instance "Sympy__sympy-6"; did you mean sympy__sympy-5?`,
		"requests":             `run has no instance "requests" among its 4`,
		"":                     `run has no instance "" among its 4`,
		strings.Repeat("x", 1): `run has no instance "x" among its 4`,
	} {
		_, err := report.NewDetail(run, id, began)
		unknown, ok := errors.AsType[*report.UnknownInstanceError](err)
		if !ok || unknown.Error() != want {
			t.Errorf("%q: %v\nwant %s", id, err, want)
		}
	}
	for _, part := range []string{"11099", "sympy"} {
		if d, err := report.NewDetail(run, part, began); err != nil || !strings.Contains(d.ID, part) {
			t.Errorf("%q: %q, %v", part, d.ID, err)
		}
	}
	_, err := report.NewDetail(&runs.Run{Dir: "run"}, "a", began)
	if err == nil || err.Error() != `run has no instance "a": it has none yet` {
		t.Errorf("empty run: %v", err)
	}
	run.Manifest.Dataset.Selected = 300
	for id, want := range map[string]string{
		"django__django-11098":   `no attempt of "django__django-11098" in run yet: 296 of 300 instances have not been started`,
		"sympy__sympy-6":         `no attempt of "sympy__sympy-6" in run yet: 296 of 300 instances have not been started`,
		"\x1b[2J":                `no attempt of "\x1b[2J" in run yet: 296 of 300 instances have not been started`,
		"djagno__django-11099":   `run has no instance "djagno__django-11099"; did you mean django__django-11099?`,
		"matplotlib__matplotl-5": `no attempt of "matplotlib__matplotl-5" in run yet: 296 of 300 instances have not been started`,
	} {
		if _, err := report.NewDetail(run, id, began); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", id, err, want)
		}
	}
}
