// Package sessions stores the sessions of each folder, so that the latest one can be resumed. It
// stores metadata, such as the path of the journal, and a snapshot of the user's files. It does not
// store the journals.
//
//	store, err := sessions.Open(dir, folder)
//	session, err := store.Create(metadata) // or store.Open("")
//	...
//	err = session.Close()
package sessions

import (
	"cmp"
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
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

var (
	// ErrNoSession means that a folder has no session to resume.
	ErrNoSession = errors.New("no session in this folder")
	// ErrInUse means that the session is open in another process.
	ErrInUse = errors.New("the session is open in another terminal")
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
	// Pending are the messages of the user that the model has not received.
	Pending string `json:"pending,omitempty"`
	// Mode is the mode in which the session was left.
	Mode string `json:"mode,omitempty"`
}

// Stored is a session in a Store.
type Stored struct {
	Name string    // of the session in its Store
	Used time.Time // when its journal was written last
	Metadata
}

// Store contains the sessions of one folder.
type Store struct {
	folder string // the folder, without symbolic links
	dir    string // contains the files of the sessions
}

// Open returns the store for the sessions of folder, below dir. It resolves symbolic links in
// folder.
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

	path string // of the files of the session, without extension
	lock *flock.Flock
}

const (
	metadataExt = ".json"
	lockExt     = ".lock"
	snapshotExt = ".files"
	// timeLayout is the format of file names. It makes them sort by time.
	timeLayout = "20060102-150405.000000000"
)

// Max is the maximum number of sessions that are stored per folder, besides open ones that
// are older.
const Max = 20

// Create stores and locks a session, and removes the oldest ones beyond Max.
func (s Store) Create(metadata Metadata) (*Session, error) {
	metadata.Folder = s.folder
	if metadata.Started.IsZero() {
		metadata.Started = time.Now()
	}
	for _, path := range []*string{&metadata.Journal, &metadata.Trajectory} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("store session: %w", err)
		}
		*path = abs
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("store session: %w", err)
	}
	session := &Session{Metadata: metadata, path: filepath.Join(s.dir, metadata.Started.UTC().Format(timeLayout))}
	session.lock = flock.New(session.path+lockExt, flock.SetPermissions(0o600))
	locked, err := session.lock.TryLock()
	if err == nil && !locked {
		err = ErrInUse
	}
	if err == nil {
		err = session.Save()
	}
	if err != nil {
		return nil, fmt.Errorf("store session: %w", err)
	}
	s.removeOldest()
	return session, nil
}

// List returns the sessions of the folder that can be resumed. The one that was used last
// comes first.
func (s Store) List() []Stored {
	var list []Stored
	for _, path := range slices.Backward(s.paths()) {
		if stored, ok := readStored(path); ok {
			list = append(list, stored)
		}
	}
	sortByUse(list)
	return list
}

func sortByUse(list []Stored) {
	slices.SortStableFunc(list, func(a, b Stored) int { return b.Used.Compare(a.Used) })
}

// ListAll returns the sessions of all folders that Open was called with dir for, in the
// order of List.
func ListAll(dir string) []Stored {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []Stored
	for _, f := range folders {
		list = append(list, Store{dir: filepath.Join(dir, f.Name())}.List()...)
	}
	sortByUse(list)
	return list
}

// readStored reads the metadata of a session. It returns false if they are damaged or if the
// journal is gone.
func readStored(path string) (Stored, bool) {
	stored := Stored{Name: filepath.Base(path)}
	data, err := os.ReadFile(path + metadataExt) //nolint:gosec // the path is in mini's own folder
	if err != nil || json.Unmarshal(data, &stored.Metadata) != nil {
		return stored, false
	}
	info, err := os.Stat(stored.Journal)
	if err != nil || !info.Mode().IsRegular() {
		return stored, false
	}
	stored.Used = info.ModTime()
	return stored, true
}

// Open opens and locks a session of the folder by its name; "" means the one used last.
func (s Store) Open(name string) (*Session, error) {
	for _, stored := range s.List() {
		if name != "" && name != stored.Name {
			continue
		}
		path := filepath.Join(s.dir, stored.Name)
		session := &Session{Metadata: stored.Metadata, path: path, lock: flock.New(path+lockExt, flock.SetPermissions(0o600))}
		locked, err := session.lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("open session: %w", err)
		}
		if !locked {
			return nil, ErrInUse
		}
		return session, nil
	}
	return nil, ErrNoSession
}

// paths returns the paths of the metadata files without extension, oldest first.
func (s Store) paths() []string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), metadataExt); ok {
			paths = append(paths, filepath.Join(s.dir, name))
		}
	}
	return paths
}

// removeOldest removes the sessions beyond Max that were not used for the longest time,
// except open ones.
func (s Store) removeOldest() {
	used := func(path string) time.Time { stored, _ := readStored(path); return stored.Used }
	paths := s.paths()
	slices.SortStableFunc(paths, func(a, b string) int { return used(a).Compare(used(b)) })
	for _, path := range paths[:max(0, len(paths)-Max)] {
		lock := flock.New(path+lockExt, flock.SetPermissions(0o600))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		remove(path)
		_ = lock.Close()
	}
}

// remove deletes the files of a session. It ignores errors; the next session tries again if the
// metadata file is still there.
func remove(path string) {
	_ = os.RemoveAll(path + snapshotExt)
	_ = os.Remove(path + metadataExt)
	_ = os.Remove(path + lockExt)
}

// Name returns the name of the session in its Store.
func (s *Session) Name() string { return filepath.Base(s.path) }

// Save writes the metadata.
func (s *Session) Save() error {
	text, err := json.MarshalIndent(s.Metadata, "", "  ")
	if err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	return atomicfile.Write(s.path+metadataExt, append(text, '\n'), 0o600)
}

// SnapshotDir returns the folder of the snapshot of the user's files.
func (s *Session) SnapshotDir() string { return s.path + snapshotExt }

// RemoveSnapshot deletes the snapshot of the user's files.
func (s *Session) RemoveSnapshot() error {
	if err := os.RemoveAll(s.SnapshotDir()); err != nil {
		return fmt.Errorf("remove snapshot of session: %w", err)
	}
	return nil
}

// Delete removes the session and closes it.
func (s *Session) Delete() error {
	remove(s.path)
	return s.Close()
}

// Close unlocks the session.
func (s *Session) Close() error { return s.lock.Close() }

// Info describes a session for lists.
type Info struct {
	Metadata
	Model string // "" if the journal cannot be read
	End   string // exit status of the last attempt; "not ended" if there is none
	Cost  model.Cost
	// Unpriced means that the price of some calls is unknown: Cost is a minimum.
	Unpriced bool
}

// Info reads the beginning and the end of the journal.
func (s Stored) Info() Info {
	i := Info{Metadata: s.Metadata, End: "not ended"}
	if header, err := trajectories.ReadHeader(s.Journal); err == nil {
		i.Model = cmp.Or(header.ModelName, header.ModelClass)
	}
	if out, ok, err := trajectories.ReadOutcome(s.Journal); err == nil && ok {
		i.End, i.Cost, i.Unpriced = out.ExitStatus, out.Cost, out.Usage.Unpriced > 0
	}
	return i
}
