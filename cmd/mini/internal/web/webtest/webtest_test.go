package webtest_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

func read(t *testing.T, dir string) (*runs.Run, verdicts.Set) {
	t.Helper()
	run, err := runs.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := verdicts.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.ReadErrors)+len(set.Unreadable) > 0 {
		t.Errorf("errors: %.500q %.500q", run.ReadErrors, set.Unreadable)
	}
	return run, set
}

// The readers of runs take both runs without errors, and both have the same shape.
func TestHostileRun(t *testing.T) {
	shape := func(write func(testing.TB, string)) (counts [5]int, run *runs.Run, set verdicts.Set) {
		dir := filepath.Join(t.TempDir(), "run")
		write(t, dir)
		run, set = read(t, dir)
		own := report.ReadPredictions(run)
		for _, in := range run.Instances {
			d, err := report.NewDetail(run, in.ID, run.Manifest.Sessions[0].Started)
			if err != nil {
				t.Fatal(err)
			}
			d.AddVerdicts(set, own)
			if datasets.CheckID(in.ID) != nil && len(d.Files)+len(d.AttemptList)+len(verdicts.ReadInstance(dir, in.ID, nil)) > 0 {
				t.Errorf("%q has files %q", in.ID, d.Files)
			}
			counts[0]++
			counts[1] += len(d.AttemptList)
			counts[2] += len(d.LastSteps)
			counts[3] += len(d.Verdicts)
			counts[4] += len(d.Files)
		}
		return counts, run, set
	}
	want, _, _ := shape(webtest.HarmlessRun)
	got, run, set := shape(webtest.HostileRun)
	valid, invalid := webtest.IDs()
	if n := len(webtest.Strings()) + len(valid) + len(invalid) + 2; got[0] != n || want[0] != n {
		t.Errorf("%d and %d instances, want %d", got[0], want[0], n)
	}
	if got[1] != want[1] || got[2] != want[2] || got[4] != want[4] {
		t.Errorf("attempts, steps and files: %v, those of the harmless run: %v", got, want)
	}
	for i, h := range webtest.Strings() {
		id := webtest.ID(i)
		in := run.Instances[slices.IndexFunc(run.Instances, func(in runs.Instance) bool { return in.ID == id })]
		if out := lastOutput(t, in.Attempts[0].Journal); out != "before\n"+text.Clip(h.Text, webtest.MaxLarge)+"\nafter\n" {
			t.Errorf("%s: the output is %.200q", h.Name, out)
		}
		n := slices.IndexFunc(set.Verdicts, func(v verdicts.Verdict) bool { return v.Instance == id })
		failed, err := verdicts.ReadFailedTests(run.Dir, set.Verdicts[n].VerdictDir(), id)
		if err != nil || failed == nil || len(failed.FailToPass) != 3 {
			t.Errorf("%s: failed tests %.200v, %v", h.Name, failed, err)
		}
	}
}

// lastOutput returns the output of the last command of an attempt.
func lastOutput(t *testing.T, journal string) (output string) {
	t.Helper()
	for r, err := range trajectories.Read(journal) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == trajectories.TypeExecution {
			var x trajectories.Execution
			if err := json.Unmarshal(r.Data, &x); err != nil {
				t.Fatal(err)
			}
			output = string(x.Output)
		}
	}
	return output
}

// All attempts, results and verdicts of a large run are there.
func TestBigRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 25, 3, 4)
	run, set := read(t, dir)
	resolved, attempts := 0, 0
	for _, in := range run.Instances {
		attempts += len(in.Attempts)
		for _, r := range in.Repetitions {
			if r.Verdict != nil && *r.Verdict == string(verdicts.Resolved) {
				resolved++
			}
		}
	}
	if len(run.Instances) != 25 || attempts != 75 || len(set.Verdicts) != 66 || resolved != 44 {
		t.Errorf("%d instances, %d attempts, %d verdicts, %d resolved", len(run.Instances), attempts, len(set.Verdicts), resolved)
	}
}

func TestLongAttempt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.LongAttempt(t, dir)
	run, _ := read(t, dir)
	tr, err := timeline.Build(trajectories.Read(run.Instances[0].Attempts[0].Journal))
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, s := range tr.Steps {
		if s.Contains(func(text string) bool { return strings.Contains(text, webtest.RareWord) }) {
			found = append(found, s.Number)
		}
	}
	if !slices.Equal(found, []int{webtest.RareStep}) {
		t.Errorf("of %d steps, %v have the word", tr.ReplyCount(), found)
	}
}
