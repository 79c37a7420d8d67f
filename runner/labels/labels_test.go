package labels_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/runner/labels"
)

func TestChange(t *testing.T) {
	dir := t.TempDir()
	many := make([]string, labels.MaxPerInstance+1)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	for _, step := range []struct {
		id          string
		add, remove []string
		want, err   string // the labels, or a part of the error
	}{
		{"a", []string{"flaky", "bad-row", "flaky"}, nil, "bad-row flaky", ""},
		{"b", []string{"a.b/c_d-1"}, nil, "a.b/c_d-1", ""},
		{"a", []string{"new"}, []string{"flaky"}, "bad-row new", ""},
		{"a", nil, []string{"flaky"}, "", `a has no label "flaky"; it has bad-row, new`},
		{"c", nil, []string{"flaky"}, "", `c has no label "flaky"; it has none`},
		{"b", nil, []string{"a.b/c_d-1"}, "", ""},
		{"a", nil, nil, "bad-row new", ""},
		{"a", []string{"Upper"}, nil, "", `"Upper" is not a label`},
		{"a", []string{"two words"}, nil, "", "is not a label"},
		{"a", []string{"-x"}, nil, "", "is not a label"},
		{"a", []string{""}, nil, "", "is not a label"},
		{"a", []string{"ok\n"}, nil, "", "is not a label"},
		{"a", []string{"\x1b[2J"}, nil, "", "is not a label"},
		{"a", []string{strings.Repeat("x", 41)}, nil, "", "at most 40"},
		{"d", []string{strings.Repeat("x", 40)}, nil, strings.Repeat("x", 40), ""},
		{"a", many, nil, "", `"a" has more than 50 labels`},
		{"../a", []string{"x"}, nil, "", "slash"},
	} {
		got, err := labels.Change(dir, step.id, step.add, step.remove)
		if text := strings.Join(got, " "); text != step.want || (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s + %q - %q: %q, %v", step.id, step.add, step.remove, text, err)
		}
	}
	all, err := labels.Read(dir)
	if err != nil || len(all) != 2 || !slices.Equal(all["a"], []string{"bad-row", "new"}) {
		t.Errorf("%v, %v", all, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("other files than labels.json: %v, %v", entries, err)
	}
}

// Concurrent changes are not lost.
func TestConcurrentChanges(t *testing.T) {
	dir := t.TempDir()
	const n = 16
	var g errgroup.Group
	for i := range n {
		g.Go(func() error {
			_, err := labels.Change(dir, fmt.Sprint("i", i%4), []string{fmt.Sprint("n", i)}, nil)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	all, err := labels.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, words := range all {
		total += len(words)
	}
	if total != n {
		t.Errorf("%d of %d labels: %v", total, n, all)
	}
}

// A note is kept beside labels, and has nothing that a reader cannot see.
func TestSetNote(t *testing.T) {
	dir := t.TempDir()
	if _, err := labels.Change(dir, "a", []string{"flaky"}, nil); err != nil {
		t.Fatal(err)
	}
	for note, want := range map[string]string{
		" two\r\nlines \n": "two\nlines", "a\u202eb\x00\x1b[2Jc\xff": "ab[2Jc\ufffd", "👩\u200d💻 é": "👩\u200d💻 é", strings.Repeat("x", 4000): strings.Repeat("x", 4000), " ": "",
	} {
		if err := labels.SetNote(dir, "a", note); err != nil {
			t.Errorf("%.20q: %v", note, err)
		}
		words, notes, err := labels.ReadAll(dir)
		if err != nil || notes["a"] != want || len(words["a"]) != 1 {
			t.Errorf("%.20q: %.20q, %v, %v", note, notes["a"], words, err)
		}
	}
	for id, note := range map[string]string{"a": strings.Repeat("x", 4001), "../a": "x"} {
		if err := labels.SetNote(dir, id, note); err == nil {
			t.Errorf("%s: a note of %d bytes is accepted", id, len(note))
		}
	}
}

// The file is untrusted, and an invalid one is not overwritten.
func TestUntrustedFile(t *testing.T) {
	for name, content := range map[string]string{
		"torn":     `{"format":`,
		"format":   `{"format":"mini-labels-9","labels":{}}`,
		"label":    `{"format":"mini-labels-1","labels":{"a":["\u001b[2J"]}}`,
		"id":       `{"format":"mini-labels-1","labels":{"../a":["x"]}}`,
		"too many": `{"format":"mini-labels-1","labels":{"a":["x"` + strings.Repeat(`,"x"`, 50) + `]}}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "labels.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := labels.Read(dir); err == nil || !strings.Contains(err.Error(), "labels.json") {
			t.Errorf("%s: read: %v", name, err)
		}
		if _, err := labels.Change(dir, "b", []string{"x"}, nil); err == nil {
			t.Errorf("%s: changed", name)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != content {
			t.Errorf("%s: overwritten: %s, %v", name, data, err)
		}
	}

	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "labels.json"), []byte(`{"format":"mini-labels-1","labels":null}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if words, err := labels.Change(empty, "a", []string{"x"}, nil); err != nil || len(words) != 1 {
		t.Errorf("no labels in the file: %v, %v", words, err)
	}

	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "labels.json")
	if err := os.WriteFile(outside, []byte(`{"format":"mini-labels-1","labels":{"a":["secret"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "labels.json")); err != nil {
		t.Fatal(err)
	}
	if all, err := labels.Read(dir); err == nil {
		t.Errorf("followed a link out of the folder: %v", all)
	}
	if all, err := labels.Read(t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("no file: %v, %v", all, err)
	}
	if _, err := labels.Read(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder")
	}
}
