package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
)

// finishedRun leaves a run of two instances with results, with its folder open.
func finishedRun(t *testing.T) (string, *runner.Batch) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	b := batch(t, dir, submits)
	if _, err := b.Folder.StartSession(runs.Manifest{Dataset: runs.Dataset{Selected: 2}}, nil); err != nil {
		t.Fatal(err)
	}
	sum, err := b.Run(t.Context(), rows("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Folder.EndSession(sum); err != nil {
		t.Fatal(err)
	}
	return dir, b
}

func readRun(t *testing.T, dir string) *runs.Run {
	t.Helper()
	run, err := runs.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func writeFileAt(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ReadRun returns what the run wrote, even if derived files are missing.
func TestReadRun(t *testing.T) {
	tests := []struct {
		name   string
		spoil  func(t *testing.T, dir string)
		unread string
	}{
		{"whole", func(*testing.T, string) {}, ""},
		{"no results.json", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "results.json")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"stale results.json", func(t *testing.T, dir string) {
			writeFileAt(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{"a":{"class":"provider"}}}`)
		}, ""},
		{"torn results.json", func(t *testing.T, dir string) { writeFileAt(t, filepath.Join(dir, "results.json"), `{"format":"mini`) }, "results.json"},
		{"torn run.json", func(t *testing.T, dir string) { writeFileAt(t, filepath.Join(dir, "run.json"), `{`) }, "run.json"},
		{"no journals", func(t *testing.T, dir string) {
			for _, id := range []string{"a", "b"} {
				if err := os.RemoveAll(filepath.Join(dir, id)); err != nil {
					t.Fatal(err)
				}
			}
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := finishedRun(t)
			want := results(t, dir)
			tt.spoil(t, dir)
			run := readRun(t, dir)
			// Durations in memory have the monotonic clock, those of journals the wall clock.
			got := map[string]runs.Result{}
			for _, in := range run.Instances {
				got[in.ID] = *in.Result
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 0.1)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text := strings.Join(run.ReadErrors, "\n"); (text == "") != (tt.unread == "") || !strings.Contains(text, tt.unread) {
				t.Errorf("unread: %q", text)
			}
		})
	}
}

// A run in progress can be read; so can a killed one.
func TestReadRunInProgress(t *testing.T) {
	dir, b := finishedRun(t)
	if _, err := b.Folder.StartSession(runs.Manifest{}, nil); err != nil {
		t.Fatal(err)
	}
	header := `{"id":1,"parent_id":0,"type":"header","time":"2126-01-01T00:00:00Z","data":{"format":"mini-1"}}`
	called := `{"id":2,"parent_id":1,"type":"call","time":"2126-01-01T00:00:09Z","data":{"cost":0.25,"usage":{"prompt_tokens":7,"completion_tokens":1}}}`
	writeFileAt(t, filepath.Join(dir, "c", "attempts", "1", "journal.jsonl"), header+"\n"+called+"\n"+`{"id":3,"par`)
	run := readRun(t, dir)
	if run.WorkerPID != os.Getpid() {
		t.Errorf("worker %d, want this process", run.WorkerPID)
	}
	c := run.Instances[2]
	if so := c.Attempts[0].Progress; c.Result != nil || so.Steps != 1 || so.Cost != 0.25 || so.Usage.Prompt != 7 || so.End.Sub(so.Start) != 9*time.Second {
		t.Errorf("attempt under way: %+v", c)
	}
	if _, err := runner.Open(dir); err == nil {
		t.Error("reading gave the folder away")
	}
	writeFileAt(t, filepath.Join(dir, ".lock"), "999999999\n")
	if run := readRun(t, dir); run.WorkerPID != 0 {
		t.Errorf("worker %d of a killed run", run.WorkerPID)
	}
}
