package history_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat/history"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a/b/history")
	h, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "one", "", " hidden", "  ", "two\nlines", strings.Repeat("x", 65<<10), "žluť"} {
		if err := h.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"one", "two\nlines", "žluť"}
	if got := h.Entries(); !slices.Equal(got, want) {
		t.Errorf("the entries are %q", got)
	}
	if h, err = history.Open(path); err != nil || !slices.Equal(h.Entries(), want) {
		t.Errorf("%v, the entries are %q", err, h.Entries())
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, err, info.Mode())
		}
	}
	// Invalid lines are skipped.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("{broken\n7\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = history.Open(path); err != nil || !slices.Equal(h.Entries(), want) {
		t.Errorf("%v, the entries are %q", err, h.Entries())
	}
	if err := h.Add("three"); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Open(filepath.Dir(path)); err == nil {
		t.Error("a folder is opened as a history")
	}
	blocked := filepath.Join(path, "below/a/file")
	if h, err = history.Open(""); err != nil || h.Add("x") != nil || len(h.Entries()) != 1 {
		t.Errorf("%v, %q", err, h.Entries())
	}
	if _, err := history.Open(blocked); err == nil {
		t.Error("a path below a file is opened")
	}
}

// A file with too many inputs is truncated.
func TestLongHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte(strings.Repeat("\"a\"\n\"b\"\n", history.MaxEntries+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(path)
	if err != nil || len(h.Entries()) != history.MaxEntries {
		t.Errorf("%v, %d entries", err, len(h.Entries()))
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != history.MaxEntries {
		t.Errorf("%v, %d lines are left", err, strings.Count(string(text), "\n"))
	}
}
