package runner_test

import (
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// importedRecords are the records of an imported attempt.
func importedRecords(t *testing.T, hash, status string) iter.Seq2[trajectories.Record, error] {
	t.Helper()
	return func(yield func(trajectories.Record, error) bool) {
		for i, data := range []any{
			trajectories.Header{Format: trajectories.Format, InstanceID: "any", ModelName: "maker/small"},
			trajectories.Import{Format: "x", SHA256: hash},
			trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: status, Submission: trajectories.Bytes("diff " + status)},
		} {
			raw, err := trajectories.EncodeJSON(data)
			if err != nil {
				t.Fatal(err)
			}
			kind := []trajectories.Type{trajectories.TypeHeader, trajectories.TypeImport, trajectories.TypeOutcome}[i]
			if !yield(trajectories.Record{ID: i + 1, Parent: i, Type: kind, Time: time.Unix(1e9, 0), Data: raw}, nil) {
				return
			}
		}
	}
}

func TestImporterAddsAttempts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first, again := runner.ImportSource{SHA256: "1"}, runner.ImportSource{SHA256: "2", Row: 3}
	taken := map[runner.ImportSource]string{}
	for n, o := range []runner.ImportSource{first, again} {
		folder, err := runner.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		in, err := folder.Importer("9.9")
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.Add("org__a-1", o, importedRecords(t, o.SHA256, o.SHA256))
		if err != nil || got.Attempt != n+1 || got.Outcome == nil || got.Outcome.ExitStatus != o.SHA256 {
			t.Fatalf("%+v; %v", got, err)
		}
		taken[o] = in.FindAttempt(o)
		if err := errors.Join(in.Close(), folder.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if taken[first] != "attempt 1 of org__a-1" || taken[again] != "attempt 2 of org__a-1" {
		t.Errorf("taken in as %v", taken)
	}
	for n := 1; n <= 2; n++ {
		for r, err := range trajectories.Read(filepath.Join(dir, "org__a-1", "attempts", string(rune('0'+n)), "journal.jsonl")) {
			if err != nil {
				t.Fatal(err)
			}
			var h trajectories.Header
			if err := json.Unmarshal(r.Data, &h); err != nil || h.InstanceID != "org__a-1" || h.Attempt != n || h.Repetition != n || h.MiniVersion != "9.9" {
				t.Errorf("attempt %d: %+v; %v", n, h, err)
			}
			break
		}
	}
	preds, err := os.ReadFile(filepath.Join(dir, "preds.json"))
	var all map[string]trajectories.Prediction
	if err = errors.Join(err, json.Unmarshal(preds, &all)); err != nil || all["org__a-1"].Model != "maker/small" {
		t.Errorf("predictions %v; %v", all, err)
	}
	if run, err := runs.Read(dir); err != nil || len(run.ReadErrors) > 0 || len(run.Instances) != 1 || len(run.Instances[0].Attempts) != 2 {
		t.Errorf("%+v; %v", run, err)
	}
}

func TestImporterRemovesFailedAttempt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	in, err := folder.Importer("1")
	if err != nil {
		t.Fatal(err)
	}
	torn := errors.New("torn")
	o := runner.ImportSource{SHA256: "1"}
	broken := func(yield func(trajectories.Record, error) bool) {
		for r, err := range importedRecords(t, "1", "x") {
			if r.ID == 3 {
				err = torn
			}
			if !yield(r, err) {
				return
			}
		}
	}
	if _, err := in.Add("a", o, broken); !errors.Is(err, torn) || in.FindAttempt(o) != "" {
		t.Errorf("error %v, taken in as %q", err, in.FindAttempt(o))
	}
	if _, err := os.Lstat(filepath.Join(dir, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
	for _, id := range []string{"", "../a", "preds.json", "a\x1bb"} {
		if _, err := in.Add(id, o, importedRecords(t, "1", "x")); err == nil {
			t.Errorf("%q was taken for a name", id)
		}
	}
	if got, err := in.Add("a", o, importedRecords(t, "1", "x")); err != nil || got.Attempt != 1 {
		t.Errorf("%+v; %v", got, err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
}
