package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/chat/history"
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
		t.Errorf("it has %q", got)
	}
	if h, err = history.Open(path); err != nil || !slices.Equal(h.Entries(), want) {
		t.Errorf("%v, it has %q", err, h.Entries())
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, err, info.Mode())
		}
	}
	// A line that cannot be read is passed over.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("{broken\n7\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = history.Open(path); err != nil || !slices.Equal(h.Entries(), want) {
		t.Errorf("%v, it has %q", err, h.Entries())
	}
	if err := h.Add("three"); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Open(filepath.Dir(path)); err == nil {
		t.Error("a folder is no history")
	}
	blocked := filepath.Join(path, "below/a/file")
	if h, err = history.Open(""); err != nil || h.Add("x") != nil || len(h.Entries()) != 1 {
		t.Errorf("%v, %q", err, h.Entries())
	}
	if _, err := history.Open(blocked); err == nil {
		t.Error("there is no folder below a file")
	}
}

// A file with many more inputs than are remembered is made shorter.
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

// Sessions side by side lose nothing, and the oldest go first.
func TestHistoryOfMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	const sessions, each = 4, 10
	var old strings.Builder
	for i := range history.MaxEntries - 5 {
		fmt.Fprintf(&old, "\"old %d\"\n", i)
	}
	if err := os.WriteFile(path, []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range sessions {
		h, err := history.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for k := range each {
				if err := h.Add(fmt.Sprintf("new %d %d", i, k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	all, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	entries := all.Entries()
	if len(entries) != history.MaxEntries || entries[0] != "old 35" {
		t.Errorf("%d entries, the first is %q", len(entries), entries[0])
	}
	for i := range sessions {
		for k := range each {
			if !slices.Contains(entries, fmt.Sprintf("new %d %d", i, k)) {
				t.Errorf("session %d lost its input %d", i, k)
			}
		}
	}
}
