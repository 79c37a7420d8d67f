package runner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// heard collects what a batch says was submitted.
type heard struct {
	mu    sync.Mutex
	preds map[string]string
}

func (s *heard) submitted(in datasets.Instance, _ int, p trajectories.Prediction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.InstanceID != in.ID {
		panic("a prediction of " + p.InstanceID + " for " + in.ID)
	}
	s.preds[in.ID] += p.Model + ": " + p.Patch
}

func TestSubmissionsAreToldOf(t *testing.T) {
	dir := t.TempDir()
	first := &heard{preds: map[string]string{}}
	b := batch(t, dir, submits)
	b.Submitted = first.submitted
	if _, err := b.Run(t.Context(), rows("a", "b")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "m: the patch\n", "b": "m: the patch\n"}
	if diff := cmp.Diff(want, first.preds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_ = b.Folder.Close()

	// Those that have a result are told of again, once.
	second := &heard{preds: map[string]string{}}
	b = batch(t, dir, submits)
	b.Submitted = second.submitted
	if _, err := b.Run(t.Context(), rows("a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	want["c"] = want["a"]
	if diff := cmp.Diff(want, second.preds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// judge leaves the record of a verdict in a run's folder.
func judge(t *testing.T, dir, run, model, id, class, patch string, age time.Duration) {
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

func TestVerdictsStandInTheResults(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	b.Submitted = func(in datasets.Instance, _ int, p trajectories.Prediction) {
		if in.ID == "live" {
			judge(t, dir, "one", "m", "live", "resolved", p.Patch, 0)
			b.Log.Emit(runner.Event{Type: runner.Verdict, Instance: in.ID, Verdict: "resolved"})
		}
	}
	const patch = "the patch\n"
	judge(t, dir, "one", "m", "earlier", "unresolved", patch, time.Hour)
	judge(t, dir, "two", "m", "earlier", "resolved", patch, time.Minute)
	judge(t, dir, "one", "m", "another-patch", "resolved", strings.ToUpper(patch), 0)
	judge(t, dir, "one", "gold", "another-model", "resolved", patch, 0)
	if err := os.WriteFile(filepath.Join(dir, "verdicts", "one", "m", "torn.json"), []byte(`{"class":`), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := []string{"live", "earlier", "another-patch", "another-model", "torn", "none"}
	if _, err := b.Run(t.Context(), rows(ids...)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"live": "resolved", "earlier": "resolved"}
	if diff := cmp.Diff(want, entered(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	// What is judged after the run is entered by its name.
	judge(t, dir, "one", "m", "none", "timed_out", patch, 0)
	b.Log.Emit(runner.Event{Type: runner.Verdict, Instance: "none", Verdict: "timed_out"})
	before := results(t, dir)
	if err := b.Folder.EnterVerdicts(); err != nil {
		t.Fatal(err)
	}
	want["none"] = "timed_out"
	if diff := cmp.Diff(want, entered(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	after := results(t, dir)
	r := after["none"]
	r.Verdict = nil
	after["none"] = r
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("something else changed (-before +after)\n%s", diff)
	}
}

// TestOwnVerdictsCount: the verdict that the user made stands in the results, and
// is found, whatever the time of one that came with the folder.
func TestOwnVerdictsCount(t *testing.T) {
	dir := t.TempDir()
	b := batch(t, dir, submits)
	own := func(r verdicts.Record) bool { return r.Class != verdicts.Resolved }
	b.Folder.OwnVerdicts(own)
	const patch = "the patch\n"
	judge(t, dir, "mini", "m", "a", "timed_out", patch, 2*time.Hour)
	judge(t, dir, "mini2", "m", "a", "unresolved", patch, time.Hour)
	judge(t, dir, "aa", "m", "a", "resolved", patch, -time.Hour)
	judge(t, dir, "zz", "m", "a", "resolved", patch, -time.Hour)
	judge(t, dir, "zz", "m", "b", "resolved", patch, 0) // there is no other
	if _, err := b.Run(t.Context(), rows("a", "b")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "unresolved", "b": "resolved"}
	if diff := cmp.Diff(want, entered(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := b.Folder.EnterVerdicts(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, entered(t, dir)); diff != "" {
		t.Errorf("entered (-want +got)\n%s", diff)
	}
	for id, class := range want {
		v := verdicts.Newest(verdicts.OfInstance(dir, id, own), trajectories.Prediction{InstanceID: id, Model: "m", Patch: patch})
		if v == nil || string(v.Class) != class {
			t.Errorf("the verdict on %s is %+v, want %s", id, v, class)
		}
	}
}

func TestVerdictsWithoutARun(t *testing.T) {
	folder, err := runner.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := folder.EnterVerdicts(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder.Dir(), "results.json")); err == nil {
		t.Error("results were made from nothing")
	}
}

// entered are the verdicts in results.json.
func entered(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for id, r := range results(t, dir) {
		if r.Verdict != nil {
			found[id] = *r.Verdict
		}
	}
	return found
}

// TestEnterVerdictsOfStrangers: an id of preds.json that leads elsewhere reads no
// file there.
func TestEnterVerdictsOfStrangers(t *testing.T) {
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
	if err := b.Folder.EnterVerdicts(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "results.json")); err != nil || strings.Contains(string(data), "resolved") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestTornEvents: a line that a killed mini left half written is cut off before
// another event follows.
func TestTornEvents(t *testing.T) {
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
