// Package sessions stores the sessions of each folder, so that the latest can be resumed. It
// stores metadata: the path of the journal and a snapshot of the user's files. The journals
// may be anywhere.
//
//	session, err := sessions.Open(dir, folder).Create(metadata)
//	session, err := sessions.Open(dir, folder).OpenLatest()
//	...
//	err = session.Close()
package sessions

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/userdirs"
)

var (
	// ErrNoSession means that a folder has no session to resume.
	ErrNoSession = errors.New("no session in this folder")
	// ErrInUse means that the latest session is open in another process.
	ErrInUse = errors.New("the last session of this folder is open in another terminal")
)

// Metadata describes a session.
type Metadata struct {
	Folder     string    `json:"folder"`
	Task       string    `json:"task"`
	Journal    string    `json:"journal"`
	Trajectory string    `json:"trajectory"`
	Started    time.Time `json:"started"`
	// BaseURL is the address of the model, unless a file in the folder set it.
	BaseURL string `json:"base_url,omitempty"`
}

// Store is the sessions of one folder.
type Store struct {
	folder string // the folder, without symbolic links
	dir    string // contains the metadata files
}

// Open returns the sessions of folder, stored below dir. Symbolic links in folder are
// resolved.
func Open(dir, folder string) (Store, error) {
	path, key, err := userdirs.FolderKey(folder)
	if err != nil {
		return Store{}, err
	}
	return Store{folder: path, dir: filepath.Join(dir, key)}, nil
}

// Session is an open session, locked by this process.
type Session struct {
	Metadata

	path string // without extension
	lock *flock.Flock
}

const (
	metadataExt = ".json"
	lockExt     = ".lock"
	snapshotExt = ".files"
	// timeLayout is the format of file names: they sort by time.
	timeLayout = "20060102-150405.000000000"
)

// maxSessions is the number of sessions stored per folder.
const maxSessions = 20

// Create stores a session and removes the oldest ones beyond maxSessions.
func (f Store) Create(n Metadata) (*Session, error) {
	n.Folder = f.folder
	if n.Started.IsZero() {
		n.Started = time.Now()
	}
	for _, path := range []*string{&n.Journal, &n.Trajectory} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("store session: %w", err)
		}
		*path = abs
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("store session: %w", err)
	}
	h := &Session{Metadata: n, path: filepath.Join(f.dir, n.Started.UTC().Format(timeLayout))}
	h.lock = flock.New(h.path+lockExt, flock.SetPermissions(0o600))
	locked, err := h.lock.TryLock()
	if err == nil && !locked {
		err = ErrInUse
	}
	if err == nil {
		err = h.Save()
	}
	if err != nil {
		return nil, fmt.Errorf("store session: %w", err)
	}
	f.removeOldest()
	return h, nil
}

// OpenLatest opens the latest session whose journal exists.
func (f Store) OpenLatest() (*Session, error) {
	for _, path := range slices.Backward(f.paths()) {
		text, err := os.ReadFile(path + metadataExt) //nolint:gosec // of mini's own folder
		if err != nil {
			return nil, fmt.Errorf("read session: %w", err)
		}
		h := &Session{path: path, lock: flock.New(path+lockExt, flock.SetPermissions(0o600))}
		if json.Unmarshal(text, &h.Metadata) != nil {
			continue // skip a damaged file
		}
		if info, err := os.Stat(h.Journal); err != nil || !info.Mode().IsRegular() {
			continue
		}
		locked, err := h.lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("open session: %w", err)
		}
		if !locked {
			return nil, ErrInUse
		}
		return h, nil
	}
	return nil, ErrNoSession
}

// paths returns the paths of the metadata files without extension, oldest first.
func (f Store) paths() []string {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), metadataExt); ok {
			names = append(names, filepath.Join(f.dir, name))
		}
	}
	return names
}

// removeOldest removes the oldest sessions that are not open.
func (f Store) removeOldest() {
	names := f.paths()
	for _, path := range names[:max(0, len(names)-maxSessions)] {
		lock := flock.New(path+lockExt, flock.SetPermissions(0o600))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		remove(path)
		_ = lock.Close()
	}
}

// remove deletes the files of a session. Errors are ignored: the next session tries again.
func remove(path string) {
	_ = os.RemoveAll(path + snapshotExt)
	_ = os.Remove(path + metadataExt)
	_ = os.Remove(path + lockExt)
}

// Save writes the metadata.
func (h *Session) Save() error {
	text, err := json.MarshalIndent(h.Metadata, "", "  ")
	if err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	return atomicfile.Write(h.path+metadataExt, append(text, '\n'), 0o600)
}

// SnapshotDir returns the folder of the snapshot of the user's files.
func (h *Session) SnapshotDir() string { return h.path + snapshotExt }

// RemoveSnapshot deletes the snapshot of the user's files.
func (h *Session) RemoveSnapshot() error {
	if err := os.RemoveAll(h.SnapshotDir()); err != nil {
		return fmt.Errorf("remove snapshot of session: %w", err)
	}
	return nil
}

// Delete removes the session and closes it.
func (h *Session) Delete() error {
	remove(h.path)
	return h.Close()
}

// Close unlocks the session.
func (h *Session) Close() error { return h.lock.Close() }
