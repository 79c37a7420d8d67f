package sessions_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
)

func openStore(t *testing.T, dir, folder string) sessions.Store {
	t.Helper()
	f, err := sessions.Open(dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func journal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenLatest(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	f := openStore(t, dir, folder)
	if _, err := f.OpenLatest(); !errors.Is(err, sessions.ErrNoSession) {
		t.Errorf("an unknown folder: %v", err)
	}
	first, second := journal(t), journal(t)
	begun := time.Now()
	for i, path := range []string{first, second} {
		h, err := f.Create(sessions.Metadata{Task: path, Journal: path, Started: begun.Add(time.Duration(i) * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.OpenLatest(); !errors.Is(err, sessions.ErrInUse) {
			t.Errorf("one that is open: %v", err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	newest := func(f sessions.Store, want string) {
		t.Helper()
		h, err := f.OpenLatest()
		if err != nil {
			t.Fatal(err)
		}
		if h.Task != want || h.Journal != want {
			t.Errorf("the newest is %+v", h.Metadata)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	newest(f, second)
	newest(openStore(t, dir, link), second)
	if _, err := openStore(t, dir, t.TempDir()).OpenLatest(); !errors.Is(err, sessions.ErrNoSession) {
		t.Errorf("another folder: %v", err)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	newest(f, first)
	if _, err := sessions.Open(dir, filepath.Join(folder, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestOldSessionsAreRemoved(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	f, path := openStore(t, dir, folder), journal(t)
	begun := time.Now()
	open, err := f.Create(sessions.Metadata{Task: "open", Journal: path, Started: begun})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		h, err := f.Create(sessions.Metadata{Journal: path, Started: begun.Add(time.Duration(i+1) * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(h.SnapshotDir(), 0o700), h.Close()); err != nil {
			t.Fatal(err)
		}
	}
	notes, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.files"))
	if len(notes) != 21 || len(files) != 20 { // including the open one
		t.Errorf("%d notes and %d copies of files", len(notes), len(files))
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("a journal is gone, too")
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
}
