package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/prompt"
)

func TestCommands(t *testing.T) {
	table := prompt.Commands{
		"help",
		"yolo",
		"confirm",
		"human",
		"multiline",
		"diff",
		"thinking",
		"quit",
	}
	for line, want := range map[string][]string{
		"/":  {"/confirm", "/diff", "/help", "/human", "/multiline", "/quit", "/thinking", "/yolo"},
		"/h": {"/help", "/human"}, "/HU": {"/human"}, "/x": nil, "": nil, "h": nil, "/diff ": nil, "/etc/": nil,
	} {
		if got := table.Complete(line); !slices.Equal(got, want) {
			t.Errorf("%q becomes %q, not %q", line, got, want)
		}
	}
}

// Without a terminal, lines are read as they come, and a context ends it.
func TestPipe(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var shown strings.Builder
	r := prompt.New(prompt.Config{In: in, Out: &shown})
	if _, err := out.WriteString("one\r\ntwo\\\nthree\nrest of\nthe text\x1b\nkey\nlast"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, want := range []string{"one", "two\nthree"} {
		if got, err := r.Line(ctx, "? "); err != nil || got != want {
			t.Errorf("%q, %v, not %q", got, err, want)
		}
	}
	if got, err := r.Text(ctx, "? "); err != nil || got != "rest of\nthe text" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := r.Secret(ctx, "? "); err != nil || got != "key" {
		t.Errorf("%q, %v", got, err)
	}
	why := errors.New("enough")
	done := make(chan error)
	go func() {
		_, err := r.Line(ctx, "? ")
		done <- err
	}()
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Line(t.Context(), "? "); err != nil || got != "last" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.Line(t.Context(), "? "); !errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
	if strings.Contains(shown.String(), "\x1b") {
		t.Errorf("a pipe got %q", shown.String())
	}
}

func TestFileAndNull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte("a\n"+strings.Repeat("x", prompt.MaxInput+2)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, os.DevNull} {
		in, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = in.Close() }()
		r := prompt.New(prompt.Config{In: in, Out: io.Discard})
		want := io.EOF
		if name == path {
			if got, err := r.Line(t.Context(), "? "); err != nil || got != "a" {
				t.Errorf("%q, %v", got, err)
			}
			want = prompt.ErrLong
		}
		if _, err := r.Line(t.Context(), "? "); !errors.Is(err, want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a/b/history")
	h, err := prompt.OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "one", "", " hidden", "  ", "two\nlines", strings.Repeat("x", 65<<10), "žluť"} {
		if err := h.Add(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"one", "two\nlines", "žluť"}
	if got := h.Entries(); !slices.Equal(got, want) {
		t.Errorf("it has %q", got)
	}
	if h, err = prompt.OpenHistory(path); err != nil || !slices.Equal(h.Entries(), want) {
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
	if h, err = prompt.OpenHistory(path); err != nil || !slices.Equal(h.Entries(), want) {
		t.Errorf("%v, it has %q", err, h.Entries())
	}
	if err := h.Add(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	if _, err := prompt.OpenHistory(filepath.Dir(path)); err == nil {
		t.Error("a folder is no history")
	}
	blocked := filepath.Join(path, "below/a/file")
	if h, err = prompt.OpenHistory(""); err != nil || h.Add(t.Context(), "x") != nil || len(h.Entries()) != 1 {
		t.Errorf("%v, %q", err, h.Entries())
	}
	if _, err := prompt.OpenHistory(blocked); err == nil {
		t.Error("there is no folder below a file")
	}
}

// Sessions side by side lose nothing, and the oldest go first.
func TestHistoryOfMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	const sessions, each = 4, 10
	var old strings.Builder
	for i := range prompt.MaxEntries - 5 {
		fmt.Fprintf(&old, "\"old %d\"\n", i)
	}
	if err := os.WriteFile(path, []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range sessions {
		h, err := prompt.OpenHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for k := range each {
				if err := h.Add(t.Context(), fmt.Sprintf("new %d %d", i, k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	all, err := prompt.OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	entries := all.Entries()
	if len(entries) != prompt.MaxEntries || entries[0] != "old 35" {
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
