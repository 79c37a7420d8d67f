// Package sessions remembers the sessions of each folder, so that the last one
// can be gone on with. What it keeps are notes: where a session's journal is, and
// what its files were at the start. The journals themselves may be anywhere.
//
//	held, err := sessions.In(dir, folder).New(note)   // and held.Close at the end
//	held, err := sessions.In(dir, folder).Newest()
package sessions

import (
	"crypto/sha256"
	"encoding/hex"
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
)

var (
	// ErrNone says that a folder has no session that can be gone on with.
	ErrNone = errors.New("there is no session of this folder")
	// ErrBusy says that the newest session is open in another process.
	ErrBusy = errors.New("the last session of this folder is still open in another terminal")
)

// Note is what is remembered of a session.
type Note struct {
	Folder     string    `json:"folder"`
	Task       string    `json:"task"`
	Journal    string    `json:"journal"`
	Trajectory string    `json:"trajectory"`
	Started    time.Time `json:"started"`
	// BaseURL is the address of the model, unless a file of the folder chose it.
	BaseURL string `json:"base_url,omitempty"`
}

// Folder has the notes of the sessions in one folder.
type Folder struct {
	path string // of the folder, without links
	dir  string // of the notes
}

// In finds the notes about a folder, by its path without links, below dir.
func In(dir, folder string) (Folder, error) {
	path, key, err := Key(folder)
	if err != nil {
		return Folder{}, err
	}
	return Folder{path: path, dir: filepath.Join(dir, key)}, nil
}

// Key is the path of a folder without links, and a name for it in a folder of
// mini's own.
func Key(folder string) (path, key string, err error) {
	path, err = filepath.Abs(folder)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", "", fmt.Errorf("find folder %s: %w", folder, err)
	}
	sum := sha256.Sum256([]byte(path))
	return path, hex.EncodeToString(sum[:8]), nil
}

// Held is a session that is open in this process, and in no other.
type Held struct {
	Note

	path string // without its ending
	lock *flock.Flock
}

const (
	noteEnd  = ".json"
	lockEnd  = ".lock"
	filesEnd = ".files"
	// stamp names a session: names sort as times do.
	stamp = "20060102-150405.000000000"
)

// kept are how many sessions of a folder are remembered.
const kept = 20

// New remembers a session, and forgets the oldest if there are many.
func (f Folder) New(n Note) (*Held, error) {
	n.Folder = f.path
	if n.Started.IsZero() {
		n.Started = time.Now()
	}
	for _, path := range []*string{&n.Journal, &n.Trajectory} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("remember session: %w", err)
		}
		*path = abs
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("remember session: %w", err)
	}
	h := &Held{Note: n, path: filepath.Join(f.dir, n.Started.UTC().Format(stamp))}
	h.lock = flock.New(h.path+lockEnd, flock.SetPermissions(0o600))
	locked, err := h.lock.TryLock()
	if err == nil && !locked {
		err = ErrBusy
	}
	if err == nil {
		err = h.Save()
	}
	if err != nil {
		return nil, fmt.Errorf("remember session: %w", err)
	}
	f.forget()
	return h, nil
}

// Newest opens the last session whose journal is still there.
func (f Folder) Newest() (*Held, error) {
	for _, path := range slices.Backward(f.names()) {
		text, err := os.ReadFile(path + noteEnd) //nolint:gosec // of mini's own folder
		if err != nil {
			return nil, fmt.Errorf("read session: %w", err)
		}
		h := &Held{path: path, lock: flock.New(path+lockEnd, flock.SetPermissions(0o600))}
		if json.Unmarshal(text, &h.Note) != nil {
			continue // torn by somebody's hand; the journals are not touched
		}
		if info, err := os.Stat(h.Journal); err != nil || !info.Mode().IsRegular() {
			continue
		}
		locked, err := h.lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("open session: %w", err)
		}
		if !locked {
			return nil, ErrBusy
		}
		return h, nil
	}
	return nil, ErrNone
}

// names are the paths of the notes without their ending, the oldest first.
func (f Folder) names() []string {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), noteEnd); ok {
			names = append(names, filepath.Join(f.dir, name))
		}
	}
	return names
}

// forget removes the oldest notes, but for those of sessions that are open.
func (f Folder) forget() {
	names := f.names()
	for _, path := range names[:max(0, len(names)-kept)] {
		lock := flock.New(path+lockEnd, flock.SetPermissions(0o600))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		remove(path)
		_ = lock.Close()
	}
}

// remove is what is not worth an error: the next session tries again.
func remove(path string) {
	_ = os.RemoveAll(path + filesEnd)
	_ = os.Remove(path + noteEnd)
	_ = os.Remove(path + lockEnd)
}

// Save writes the note as it is now.
func (h *Held) Save() error {
	text, err := json.MarshalIndent(h.Note, "", "  ")
	if err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	return atomicfile.Write(h.path+noteEnd, append(text, '\n'), 0o600)
}

// Files is the folder in which the session remembers the user's files.
func (h *Held) Files() string { return h.path + filesEnd }

// Drop forgets the user's files as they were.
func (h *Held) Drop() error {
	if err := os.RemoveAll(h.Files()); err != nil {
		return fmt.Errorf("forget files of session: %w", err)
	}
	return nil
}

// Forget removes a session that came to nothing, and closes it.
func (h *Held) Forget() error {
	remove(h.path)
	return h.Close()
}

// Close lets others open the session.
func (h *Held) Close() error { return h.lock.Close() }
