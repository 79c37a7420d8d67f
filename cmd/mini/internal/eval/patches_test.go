package eval

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// A run may have submissions of later repetitions only. Its file of predictions is then
// empty.
func TestPatchesOfLaterRepetitionsOnly(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"preds.json": "{}", "run.json": `{"format":"mini-1"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readPatches(dir); err == nil {
		t.Error("an empty run has patches")
	}
	attempt := filepath.Join(dir, "a", "attempts", "2")
	if err := os.MkdirAll(attempt, 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.Create(filepath.Join(attempt, "journal.jsonl"), trajectories.Header{InstanceID: "a", Attempt: 2, Repetition: 2, ModelName: "m"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Append(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted, Submission: trajectories.Bytes("p")})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	p, err := readPatches(dir)
	if err != nil || len(p.submissions) != 1 || p.submissions[0].Repetition != 2 || p.submissions[0].Patch != "p" || !p.includes("a") {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := readPatches(filepath.Join(dir, "preds.json")); err == nil {
		t.Error("a file without predictions has some")
	}
}
