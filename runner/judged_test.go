package runner_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// TestVerdictsOn finds the verdict on a patch, not on another one of the same
// instance, with its flags.
func TestVerdictsOn(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "verdicts", "first", "m")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	patch := "diff\n"
	record := fmt.Sprintf(`{"instance_id":"a","model_name_or_path":"m","class":"resolved","flags":[{"flag":"tests"},{"flag":"tests","file":"b"},{"flag":"log"}],
		"basis":{"patch_sha256":"%x","patch_bytes":%d}}`, sha256.Sum256([]byte(patch)), len(patch))
	if err := os.WriteFile(filepath.Join(folder, "a.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	verdicts := (&runner.Run{Dir: dir}).Verdicts("a", nil)
	h := trajectories.Header{InstanceID: "a", ModelName: "m"}
	p, ok := runner.Submitted(h, trajectories.Outcome{Class: trajectories.Submitted, Submission: trajectories.Bytes(patch)})
	if !ok {
		t.Fatal("a submission is none")
	}
	j, ok := verdicts.On(p)
	if diff := cmp.Diff(runner.Judgement{Class: "resolved", Flags: []string{"tests", "log"}}, j); !ok || diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	p.Patch = "other\n"
	if j, ok := verdicts.On(p); ok {
		t.Errorf("another patch is %+v", j)
	}
	if _, ok := runner.Submitted(h, trajectories.Outcome{Class: trajectories.Provider}); ok {
		t.Error("what does not count is submitted")
	}
}
