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
	store, err := sessions.Open(dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// journal creates a file and returns its path.
func journal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	store := openStore(t, dir, folder)
	if _, err := store.Open(""); !errors.Is(err, sessions.ErrNoSession) {
		t.Errorf("an unknown folder: %v", err)
	}
	first, second := journal(t), journal(t)
	start := time.Now()
	for i, path := range []string{first, second} {
		session, err := store.Create(sessions.Metadata{Task: path, Journal: path, Started: start.Add(time.Duration(i) * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Open(""); !errors.Is(err, sessions.ErrInUse) {
			t.Errorf("one that is open: %v", err)
		}
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	checkLatest := func(store sessions.Store, want string) {
		t.Helper()
		session, err := store.Open("")
		if err != nil {
			t.Fatal(err)
		}
		if session.Task != want || session.Journal != want {
			t.Errorf("the newest is %+v", session.Metadata)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	checkLatest(store, second)
	checkLatest(openStore(t, dir, link), second)
	if _, err := openStore(t, dir, t.TempDir()).Open(""); !errors.Is(err, sessions.ErrNoSession) {
		t.Errorf("another folder: %v", err)
	}
	later := time.Now().Add(time.Hour) // the first session was resumed
	if err := os.Chtimes(first, later, later); err != nil {
		t.Fatal(err)
	}
	checkLatest(store, first)
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	checkLatest(store, first)
	if _, err := sessions.Open(dir, filepath.Join(folder, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestOldSessionsAreRemoved(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	store, path := openStore(t, dir, folder), journal(t)
	start := time.Now()
	open, err := store.Create(sessions.Metadata{Task: "open", Journal: path, Started: start})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		session, err := store.Create(sessions.Metadata{Journal: path, Started: start.Add(time.Duration(i+1) * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(session.SnapshotDir(), 0o700), session.Close()); err != nil {
			t.Fatal(err)
		}
	}
	metadata, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	snapshots, _ := filepath.Glob(filepath.Join(dir, "*", "*.files"))
	if len(metadata) != 21 || len(snapshots) != 20 { // including the open one
		t.Errorf("%d sessions and %d snapshots", len(metadata), len(snapshots))
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("a journal is gone, too")
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
}
