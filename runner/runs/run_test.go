package runs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// Detect lists all journals without reading them, with the contents of results.json.
func TestDetect(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := runs.Detect(dir); !errors.Is(err, runs.ErrNotRunFolder) {
		t.Fatalf("an empty folder: %v", err)
	}
	write("results.json", `{"format":"mini-1","instances":{
		"a-10":{"class":"submitted","exit_status":"Submitted","attempt":2,"attempts":3,"steps":4,"cost":0.5,"verdict":"resolved"},
		"a-2":{"class":"","samples":[{"class":"limit","attempt":1,"sample":2}]},
		"gone":{"class":"limit","exit_status":"LimitsExceeded","attempt":1}}}`)
	for _, n := range []string{"1", "2", "3"} {
		write("a-10/attempts/"+n+"/journal.jsonl", "not even a journal\n")
	}
	journal := write("a-2/attempts/1/journal.jsonl", "")
	write("verdicts/x/y.json", "{}")
	x, err := runs.Detect(dir)
	if err != nil || len(x.ReadErrors) > 0 {
		t.Fatal(err, x)
	}
	type row struct {
		id             string
		number, sample int
		class          trajectories.Class
	}
	var got []row
	for _, in := range x.Instances {
		for _, a := range in.AllAttempts() {
			r := row{in.ID, a.Number, a.Repetition, ""}
			if a.Result != nil {
				r.class = a.Result.Class
			}
			got = append(got, r)
		}
	}
	want := []row{
		{"a-2", 1, 2, "limit"},
		{"a-10", 1, 1, ""},
		{"a-10", 2, 1, "submitted"},
		{"a-10", 3, 1, ""},
		{"gone", 1, 1, "limit"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	for path, want := range map[string]row{
		journal: {id: "a-2", number: 1}, filepath.Dir(journal): {id: "a-2", number: 1},
		filepath.Join(dir, "a-10"): {id: "a-10"}, dir: {},
	} {
		id, n, ok := x.Locate(path)
		if !ok || id != want.id || n != want.number {
			t.Errorf("%s is of %s, attempt %d, %t", path, id, n, ok)
		}
	}
	if _, _, ok := x.Locate(filepath.Dir(dir)); ok {
		t.Error("the parent folder counts as inside")
	}
	a := runs.Attempt{Number: 1, Journal: journal}
	if err := a.Load(); err != nil || a.Result != nil {
		t.Errorf("an empty journal: %+v, %v", a, err)
	}
}

func writeFileAt(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Attempts without run.json and results.json are a run that the user names, but not one
// that a search finds.
func TestOnlyAttempts(t *testing.T) {
	dir := t.TempDir()
	writeFileAt(t, filepath.Join(dir, "a", "attempts", "1", "journal.jsonl"), "")
	if run, err := runs.Open(dir); err != nil || len(run.Instances) != 1 {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err := runs.Detect(dir); !errors.Is(err, runs.ErrNotRunFolder) {
		t.Error(err)
	}
}

func TestReadOtherFolder(t *testing.T) {
	dir := t.TempDir()
	writeFileAt(t, filepath.Join(dir, "sub", "notes.txt"), "")
	writeFileAt(t, filepath.Join(dir, "results.json"), `{"a": 1}`)
	for _, path := range []string{dir, filepath.Join(dir, "sub"), filepath.Join(dir, "results.json")} {
		if _, err := runs.Read(path); !errors.Is(err, runs.ErrNotRunFolder) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := runs.Read(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestWallTime(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	ended := at(10)
	first := runs.Session{Started: start, Ended: &ended}
	killed := runs.Session{Started: at(20)}
	newest := runs.Session{Started: at(60)}
	in := runs.Instance{Attempts: []runs.Attempt{
		{Result: &runs.Result{End: at(25)}}, {Progress: runs.Totals{End: at(28)}}, {Result: &runs.Result{End: at(65)}},
	}}
	for _, tt := range []struct {
		name     string
		sessions []runs.Session
		worker   int
		want     time.Duration
	}{
		{"none", nil, 0, 0},
		{"ended", []runs.Session{first}, 0, 10 * time.Minute},
		{"killed, and another that was killed", []runs.Session{first, killed, newest}, 0, 23 * time.Minute},
		{"at work", []runs.Session{first, newest}, 1, 50 * time.Minute},
	} {
		run := runs.Run{Manifest: runs.Manifest{Sessions: tt.sessions}, WorkerPID: tt.worker, Instances: []runs.Instance{in}}
		if got := run.WallTime(at(100)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
