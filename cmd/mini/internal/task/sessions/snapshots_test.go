package sessions_test

import (
	"os"
	"testing"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
)

// The snapshots of ended sessions of the folder go, those of open ones and of other folders stay.
func TestRemoveOtherSnapshots(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	create := func(folder string, second int) *sessions.Session {
		t.Helper()
		s, err := openStore(t, dir, folder).Create(sessions.Metadata{Journal: journal(t), Started: time.Unix(int64(second), 0)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(s.SnapshotDir(), 0o700); err != nil {
			t.Fatal(err)
		}
		return s
	}
	ended, open, other, this := create(folder, 1), create(folder, 2), create(t.TempDir(), 3), create(folder, 4)
	for _, s := range []*sessions.Session{ended, other} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	this.RemoveOtherSnapshots()
	for name, tt := range map[string]struct {
		s    *sessions.Session
		kept bool
	}{"ended": {ended, false}, "open": {open, true}, "of another folder": {other, true}, "its own": {this, true}} {
		if _, err := os.Stat(tt.s.SnapshotDir()); (err == nil) != tt.kept {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := openStore(t, dir, folder).List(); len(list) != 3 {
		t.Errorf("%d sessions are left", len(list))
	}
	for _, s := range []*sessions.Session{open, this} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
