// Package scratch creates and removes the temporary directories of attempts that run
// on this machine.
//
// The owner of a directory holds a lock on it, which the kernel releases when the
// process exits. A directory that can be locked is therefore abandoned, and Sweep
// removes it. This needs no process ids, so it works for several containers that share
// a temporary directory.
//
//	dir, err := scratch.New("minidemo__ledger-17")
//	defer scratch.Remove(dir)
package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// prefix is the prefix of the names of all directories except the kept ones.
const prefix = "mini-scratch-"

// ownDirs maps the directories of this process to their lock files. It is a package
// variable because the locks belong to the process.
var ownDirs = struct {
	sync.Mutex
	dirs map[string]*os.File
}{dirs: map[string]*os.File{}}

// New creates an empty directory in the system's temporary directory, accessible to
// this user only. The directory's name contains name.
func New(name string) (string, error) {
	for {
		dir, err := NewPath(name)
		if err == nil {
			err = Create(dir)
		}
		if !errors.Is(err, fs.ErrExist) { // otherwise Sweep in another process is about to remove it
			return dir, err
		}
	}
}

// NewPath returns an unpredictable path for a directory to be created by Create.
func NewPath(name string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(os.TempDir(), prefix+name+"-"+strings.ToLower(rand.Text())))
	if err != nil {
		return "", fmt.Errorf("name temporary directory: %w", err)
	}
	return dir, nil
}

// Create creates a directory at a path returned by NewPath. It returns an error if the
// path exists.
func Create(dir string) error {
	for {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("create temporary directory: %w", err)
		}
		f, err := lock(dir)
		switch {
		case err == nil:
			ownDirs.Lock()
			defer ownDirs.Unlock()
			ownDirs.dirs[dir] = f
			return nil
		case errors.Is(err, errOwned) || errors.Is(err, fs.ErrNotExist):
			continue // Sweep in another process has locked or removed it
		default:
			return fmt.Errorf("lock temporary directory: %w", errors.Join(err, os.Remove(dir)))
		}
	}
}

// keptPrefix is the prefix of the names of kept directories, which Sweep ignores.
const keptPrefix = "mini-kept-"

// Keep renames a directory so that Sweep ignores it, and returns its new path. Remove
// of the old path has no effect then.
func Keep(dir string) (string, error) {
	kept := filepath.Join(filepath.Dir(dir), keptPrefix+strings.TrimPrefix(filepath.Base(dir), prefix))
	if err := os.Rename(dir, kept); err != nil {
		return "", fmt.Errorf("keep temporary directory: %w", err)
	}
	ownDirs.Lock()
	f := ownDirs.dirs[dir]
	delete(ownDirs.dirs, dir)
	ownDirs.Unlock()
	if f != nil {
		_ = f.Close() // nothing was written
	}
	return kept, nil
}

// Remove removes a directory with its contents, regardless of file modes. It returns
// nil if the directory does not exist.
func Remove(dir string) error {
	ownDirs.Lock()
	f := ownDirs.dirs[dir]
	delete(ownDirs.dirs, dir)
	ownDirs.Unlock()
	err := removeAll(dir)
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// removeAll is os.RemoveAll, but if that fails makes the directories writable and
// retries.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, _ error) error { // the final removal reports errors
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	_ = root.Close() // nothing was written
	return os.RemoveAll(dir)
}

// Sweep removes the abandoned directories of this user and returns their paths. It
// skips those that cannot be removed.
func Sweep() []string {
	return forEachAbandoned(func(dir string) bool { return removeAll(dir) == nil })
}

// Abandoned returns the paths of the directories that Sweep would try to remove.
func Abandoned() []string {
	return forEachAbandoned(func(string) bool { return true })
}

// forEachAbandoned calls do for each abandoned directory, with the lock held, and
// returns the directories for which do returned true.
func forEachAbandoned(do func(dir string) bool) []string {
	names, err := os.ReadDir(os.TempDir())
	if err != nil {
		return nil
	}
	var matched []string
	for _, d := range names {
		if !strings.HasPrefix(d.Name(), prefix) || !d.IsDir() {
			continue
		}
		dir := filepath.Join(os.TempDir(), d.Name())
		f, err := lock(dir)
		if err != nil || f == nil {
			continue
		}
		if do(dir) {
			matched = append(matched, dir)
		}
		_ = f.Close() // nothing was written
	}
	return matched
}
