package runner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// writeVerdict writes a verdict record to a run's folder.
func writeVerdict(t *testing.T, dir, run, model, id, class, patch string, age time.Duration) {
	t.Helper()
	sum := sha256.Sum256([]byte(patch))
	record, err := json.Marshal(map[string]any{
		"format": "mini-verdict-1", "run_id": run, "instance_id": id, "model_name_or_path": model, "class": class,
		"basis": map[string]any{"patch_sha256": hex.EncodeToString(sum[:]), "patch_bytes": len(patch)},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "verdicts", run, model, id+".json")
	written := time.Now().Add(-age)
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, record, 0o600), os.Chtimes(path, written, written),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerdictsInResults(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	b.Evaluate = func(in datasets.Instance, _ int, p trajectories.Prediction) runner.Work {
		if in.ID == "live" {
			writeVerdict(t, dir, "one", "m", "live", "resolved", p.Patch, 0)
			b.Log.Emit(runner.Event{Type: runner.Verdict, Instance: in.ID, Verdict: "resolved"})
		}
		return nil
	}
	const patch = "the patch\n"
	writeVerdict(t, dir, "one", "m", "earlier", "unresolved", patch, time.Hour)
	writeVerdict(t, dir, "two", "m", "earlier", "resolved", patch, time.Minute)
	writeVerdict(t, dir, "one", "m", "another-patch", "resolved", strings.ToUpper(patch), 0)
	writeVerdict(t, dir, "one", "gold", "another-model", "resolved", patch, 0)
	if err := os.WriteFile(filepath.Join(dir, "verdicts", "one", "m", "torn.json"), []byte(`{"class":`), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := []string{"live", "earlier", "another-patch", "another-model", "torn", "none"}
	if _, err := b.Run(t.Context(), rows(ids...)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"live": "resolved", "earlier": "resolved"}
	if diff := cmp.Diff(want, verdictsIn(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	// A verdict after the run is added by UpdateVerdicts.
	writeVerdict(t, dir, "one", "m", "none", "timed_out", patch, 0)
	b.Log.Emit(runner.Event{Type: runner.Verdict, Instance: "none", Verdict: "timed_out"})
	before := results(t, dir)
	if err := b.Folder.UpdateVerdicts(); err != nil {
		t.Fatal(err)
	}
	want["none"] = "timed_out"
	if diff := cmp.Diff(want, verdictsIn(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	after := results(t, dir)
	r := after["none"]
	r.Verdict = nil
	after["none"] = r
	clocks := cmpopts.EquateApprox(0, 1e-3) // journals have times of the wall clock
	if diff := cmp.Diff(before, after, clocks); diff != "" {
		t.Errorf("something else changed (-before +after)\n%s", diff)
	}
}

// TestOnlyOwnVerdictsCount: the user's verdict is in the results, even if an untrusted
// one in the folder is newer.
func TestOnlyOwnVerdictsCount(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	own := func(r verdicts.Record) bool { return r.Class != verdicts.Resolved }
	b.Folder.SetVerdictFilter(own)
	const patch = "the patch\n"
	writeVerdict(t, dir, "mini", "m", "a", "timed_out", patch, 2*time.Hour)
	writeVerdict(t, dir, "mini2", "m", "a", "unresolved", patch, time.Hour)
	writeVerdict(t, dir, "aa", "m", "a", "resolved", patch, -time.Hour)
	writeVerdict(t, dir, "zz", "m", "a", "resolved", patch, -time.Hour)
	writeVerdict(t, dir, "zz", "m", "b", "resolved", patch, 0) // the only verdict on b
	if _, err := b.Run(t.Context(), rows("a", "b")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "unresolved", "b": "resolved"}
	if diff := cmp.Diff(want, verdictsIn(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := b.Folder.UpdateVerdicts(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, verdictsIn(t, dir)); diff != "" {
		t.Errorf("entered (-want +got)\n%s", diff)
	}
	for id, class := range want {
		v := verdicts.Newest(verdicts.ReadInstance(dir, id, own), trajectories.Prediction{InstanceID: id, Model: "m", Patch: patch})
		if v == nil || string(v.Class) != class {
			t.Errorf("the verdict on %s is %+v, want %s", id, v, class)
		}
	}
}

func TestVerdictsWithoutRun(t *testing.T) {
	folder, err := runner.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := folder.UpdateVerdicts(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder.Dir, "results.json")); err == nil {
		t.Error("results were made from nothing")
	}
}

// verdictsIn returns the verdicts in results.json.
func verdictsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for id, r := range results(t, dir) {
		if r.Verdict != nil {
			found[id] = *r.Verdict
		}
	}
	return found
}

// TestUpdateUntrustedVerdicts: an id in preds.json that is a path reads no file.
func TestUpdateUntrustedVerdicts(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	const id = "../../../elsewhere"
	patch := "the patch\n"
	sum := sha256.Sum256([]byte(patch))
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "verdicts/mini/m/x.json"), "{}")
	write(filepath.Join(dir, "elsewhere.json"), `{"instance_id":"`+id+`","model_name_or_path":"m","class":"resolved","basis":{"patch_bytes":10,"patch_sha256":"`+
		hex.EncodeToString(sum[:])+`"}}`)
	write(filepath.Join(dir, "preds.json"), `{"`+id+`":{"instance_id":"`+id+`","model_name_or_path":"m","model_patch":"the patch\n"}}`)
	write(filepath.Join(dir, "results.json"), `{"instances":{"`+id+`":{"class":"submitted"}}}`)
	if err := b.Folder.UpdateVerdicts(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "results.json")); err != nil || strings.Contains(string(data), "resolved") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestPartialEventLine: a partial line of a killed process is removed before the next
// event.
func TestPartialEventLine(t *testing.T) {
	dir := t.TempDir()
	for _, torn := range []string{"{\"type\":\"war", strings.Repeat("x", 10_000), "{}\n{}\n{\"ty"} {
		path := filepath.Join(dir, "events.jsonl")
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		folder, err := runner.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		runner.NewLog(folder, nil).Emit(runner.Event{Type: runner.Warning, Text: "next"})
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		if want := strings.Count(torn, "\n") + 1; len(lines) != want || !strings.Contains(lines[want-1], "next") {
			t.Errorf("after %.20q there are the lines %q", torn, lines)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("after %.20q the line %q is torn", torn, line)
			}
		}
	}
}
