package runner_test

import (
	"testing"

	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// TestVerdictsOn finds the verdict on a patch among those of its instance.
func TestVerdictsOn(t *testing.T) {
	dir := t.TempDir()
	patch := "diff\n"
	writeVerdict(t, dir, "first", "m", "a", "resolved", patch, 0)
	all := verdicts.ReadInstance(dir, "a", nil)
	p, ok := runs.PredictionOf("a", "m", trajectories.Outcome{Class: trajectories.Submitted, Submission: trajectories.Bytes(patch)})
	if !ok {
		t.Fatal("a submission is none")
	}
	if v := verdicts.Newest(all, p); v == nil || v.Class != verdicts.Resolved {
		t.Errorf("the verdict is %+v", v)
	}
	p.Patch = "other\n"
	if v := verdicts.Newest(all, p); v != nil {
		t.Errorf("another patch is %+v", v)
	}
	if _, ok := runs.PredictionOf("a", "m", trajectories.Outcome{Class: trajectories.Provider}); ok {
		t.Error("what does not count is submitted")
	}
}
