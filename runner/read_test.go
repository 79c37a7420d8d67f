package runner_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// ran leaves a run of two instances with results, and its folder open.
func ran(t *testing.T) (string, *runner.Batch) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	b := batch(t, dir, submits)
	if _, err := b.Folder.Begin(runner.Manifest{Dataset: runner.Dataset{Selected: 2}}, nil); err != nil {
		t.Fatal(err)
	}
	sum, err := b.Run(t.Context(), rows("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Folder.End(sum); err != nil {
		t.Fatal(err)
	}
	return dir, b
}

func readRun(t *testing.T, dir string) *runner.Run {
	t.Helper()
	run, err := runner.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func spoil(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is read is what the run wrote, however much of it is lost: while there
// are journals they say the same.
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
			spoil(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{"a":{"class":"provider"}}}`)
		}, ""},
		{"torn results.json", func(t *testing.T, dir string) { spoil(t, filepath.Join(dir, "results.json"), `{"format":"mini`) }, "results.json"},
		{"torn run.json", func(t *testing.T, dir string) { spoil(t, filepath.Join(dir, "run.json"), `{`) }, "run.json"},
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
			dir, _ := ran(t)
			want := results(t, dir)
			tt.spoil(t, dir)
			run := readRun(t, dir)
			got := map[string]runner.Result{}
			for _, in := range run.Instances {
				got[in.ID] = *in.Result
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text := strings.Join(run.Unread, "\n"); (text == "") != (tt.unread == "") || !strings.Contains(text, tt.unread) {
				t.Errorf("unread: %q", text)
			}
		})
	}
}

// A run at work is read beside it; one that was killed, as far as it came.
func TestReadRunInTheMiddle(t *testing.T) {
	dir, b := ran(t)
	if _, err := b.Folder.Begin(runner.Manifest{}, nil); err != nil {
		t.Fatal(err)
	}
	header := `{"id":1,"parent_id":0,"type":"header","time":"2126-01-01T00:00:00Z","data":{"format":"mini-1"}}`
	called := `{"id":2,"parent_id":1,"type":"call","time":"2126-01-01T00:00:09Z","data":{"cost":0.25,"usage":{"prompt_tokens":7,"completion_tokens":1}}}`
	spoil(t, filepath.Join(dir, "c", "attempts", "1", "journal.jsonl"), header+"\n"+called+"\n"+`{"id":3,"par`)
	run := readRun(t, dir)
	if run.Worker != os.Getpid() {
		t.Errorf("worker %d, want this process", run.Worker)
	}
	c := run.Instances[2]
	if so := c.Attempts[0].SoFar; c.Result != nil || so.Steps != 1 || so.Cost != 0.25 || so.Usage.Prompt != 7 || so.End.Sub(so.Start) != 9*time.Second {
		t.Errorf("attempt under way: %+v", c)
	}
	if _, err := runner.Open(dir); err == nil {
		t.Error("reading gave the folder away")
	}
	spoil(t, filepath.Join(dir, ".lock"), "999999999\n")
	if run := readRun(t, dir); run.Worker != 0 {
		t.Errorf("worker %d of a killed run", run.Worker)
	}
}

func TestReadNoRun(t *testing.T) {
	dir := t.TempDir()
	spoil(t, filepath.Join(dir, "sub", "notes.txt"), "")
	spoil(t, filepath.Join(dir, "results.json"), `{"a": 1}`)
	for _, path := range []string{dir, filepath.Join(dir, "sub"), filepath.Join(dir, "results.json")} {
		if _, err := runner.ReadRun(path); !errors.Is(err, runner.ErrNoRun) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := runner.ReadRun(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestWall(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	ended := at(10)
	first := runner.Worked{Started: start, Ended: &ended}
	killed := runner.Worked{Started: at(20)}
	newest := runner.Worked{Started: at(60)}
	in := runner.Instance{Attempts: []runner.Attempt{
		{Result: &runner.Result{End: at(25)}}, {SoFar: runner.Tally{End: at(28)}}, {Result: &runner.Result{End: at(65)}},
	}}
	for _, tt := range []struct {
		name     string
		sessions []runner.Worked
		worker   int
		want     time.Duration
	}{
		{"none", nil, 0, 0},
		{"ended", []runner.Worked{first}, 0, 10 * time.Minute},
		{"killed, and another that was killed", []runner.Worked{first, killed, newest}, 0, 23 * time.Minute},
		{"at work", []runner.Worked{first, newest}, 1, 50 * time.Minute},
	} {
		run := runner.Run{Manifest: runner.Manifest{Sessions: tt.sessions}, Worker: tt.worker, Instances: []runner.Instance{in}}
		if got := run.Wall(at(100)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Ids stand in the order in which people count.
func TestOrderOfInstances(t *testing.T) {
	dir := t.TempDir()
	instances := map[string]runner.Result{}
	want := []string{"a-1", "a-2", "a-02b", "a-10", "a-10-1", "a-x", "b"}
	for _, id := range want {
		instances[id] = runner.Result{Class: trajectories.Submitted}
	}
	data, err := json.Marshal(runner.Results{Format: trajectories.Format, Instances: instances})
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, filepath.Join(dir, "results.json"), string(data))
	var got []string
	for _, in := range readRun(t, dir).Instances {
		got = append(got, in.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
