package sessions_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/sessions"
)

func in(t *testing.T, dir, folder string) sessions.Folder {
	t.Helper()
	f, err := sessions.In(dir, folder)
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

func TestNewestSessionOfAFolder(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	f := in(t, dir, folder)
	if _, err := f.Newest(); !errors.Is(err, sessions.ErrNone) {
		t.Errorf("an unknown folder: %v", err)
	}
	first, second := journal(t), journal(t)
	begun := time.Now()
	for i, path := range []string{first, second} {
		h, err := f.New(sessions.Note{Task: path, Journal: path, Started: begun.Add(time.Duration(i) * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Newest(); !errors.Is(err, sessions.ErrBusy) {
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
	newest := func(f sessions.Folder, want string) {
		t.Helper()
		h, err := f.Newest()
		if err != nil {
			t.Fatal(err)
		}
		if h.Task != want || h.Journal != want {
			t.Errorf("the newest is %+v", h.Note)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	newest(f, second)
	newest(in(t, dir, link), second)
	if _, err := in(t, dir, t.TempDir()).Newest(); !errors.Is(err, sessions.ErrNone) {
		t.Errorf("another folder: %v", err)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	newest(f, first)
	if _, err := sessions.In(dir, filepath.Join(folder, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestOldSessionsAreForgotten(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	f, path := in(t, dir, folder), journal(t)
	begun := time.Now()
	open, err := f.New(sessions.Note{Task: "open", Journal: path, Started: begun})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		h, err := f.New(sessions.Note{Journal: path, Started: begun.Add(time.Duration(i+1) * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(h.Files(), 0o700), h.Close()); err != nil {
			t.Fatal(err)
		}
	}
	notes, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.files"))
	if len(notes) != 21 || len(files) != 20 { // and the one that is open
		t.Errorf("%d notes and %d copies of files", len(notes), len(files))
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("a journal is gone, too")
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
}
