package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// An index lists all journals without reading them, with the contents of
// results.json.
func TestReadIndex(t *testing.T) {
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
	if _, err := runner.ReadIndex(dir); !errors.Is(err, runner.ErrNotRunFolder) {
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
	x, err := runner.ReadIndex(dir)
	if err != nil || len(x.ReadErrors) > 0 {
		t.Fatal(err, x)
	}
	type row struct {
		id               string
		number, sample   int
		selected, newest bool
		class            trajectories.Class
	}
	var got []row
	for _, a := range x.Attempts {
		r := row{a.ID, a.Number, a.Repetition, a.Selected, a.Newest, ""}
		if a.Result != nil {
			r.class = a.Result.Class
		}
		got = append(got, r)
	}
	want := []row{
		{"a-2", 1, 2, true, true, "limit"},
		{"a-10", 1, 1, false, false, ""},
		{"a-10", 2, 1, true, false, "submitted"},
		{"a-10", 3, 1, false, true, ""},
		{"gone", 1, 1, true, true, "limit"},
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
	if a, err := runner.ReadAttempt(journal, 1); err != nil || a.Result != nil {
		t.Errorf("an empty journal: %+v, %v", a, err)
	}
}
