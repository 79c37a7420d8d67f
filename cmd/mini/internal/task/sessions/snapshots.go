package sessions

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// RemoveOtherSnapshots deletes the snapshots of the other sessions of the folder, except open ones.
// They are of no use after this session, because they do not tell its changes from theirs. It
// ignores errors; the next session tries again.
func (s *Session) RemoveOtherSnapshots() {
	for _, path := range (Store{dir: filepath.Dir(s.path)}).paths() {
		if _, err := os.Lstat(path + snapshotExt); path == s.path || err != nil {
			continue
		}
		lock := flock.New(path+lockExt, flock.SetPermissions(0o600))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		_ = os.RemoveAll(path + snapshotExt)
		_ = lock.Close()
	}
}
