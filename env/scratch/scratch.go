// Package scratch makes the temporary folders of attempts that run on this
// machine, and removes them, those of a killed program too.
//
// A folder's owner holds a lock on it, which the kernel gives up with the owner
// however that ends. So a folder that can be locked has none, and Sweep removes
// it; it needs to know nothing about processes, and works where several
// containers share a temporary directory.
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

// prefix of the names of all folders.
const prefix = "mini-scratch-"

// held are the folders of this program, locked as long as they are open. The
// locks belong to the process, and so does the list.
var held = struct {
	sync.Mutex
	dirs map[string]*os.File
}{dirs: map[string]*os.File{}}

// New makes an empty folder in the system's temporary directory, for this user
// alone. The name of what it is for becomes part of its name.
func New(name string) (string, error) {
	for {
		dir, err := Plan(name)
		if err == nil {
			err = Make(dir)
		}
		if !errors.Is(err, fs.ErrExist) { // a sweep is about to remove it
			return dir, err
		}
	}
}

// Plan is the path of a folder that Make can make later. Nobody can guess it
// before.
func Plan(name string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(os.TempDir(), prefix+name+"-"+strings.ToLower(rand.Text())))
	if err != nil {
		return "", fmt.Errorf("plan temporary folder: %w", err)
	}
	return dir, nil
}

// Make makes a folder that was planned, as New does. One that is there is an
// error.
func Make(dir string) error {
	for {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("make temporary folder: %w", err)
		}
		f, err := lock(dir)
		switch {
		case err == nil:
			held.Lock()
			defer held.Unlock()
			held.dirs[dir] = f
			return nil
		case errors.Is(err, errOwned) || errors.Is(err, fs.ErrNotExist):
			continue // a sweep was quicker, and the folder is gone
		default:
			return fmt.Errorf("lock temporary folder: %w", errors.Join(err, os.Remove(dir)))
		}
	}
}

// keptPrefix is that of folders that stay; Sweep does not know it.
const keptPrefix = "mini-kept-"

// Keep makes a folder stay, whoever looks for leftovers, and returns its new
// path: nothing is at the old one then, and its Remove does nothing.
func Keep(dir string) (string, error) {
	kept := filepath.Join(filepath.Dir(dir), keptPrefix+strings.TrimPrefix(filepath.Base(dir), prefix))
	if err := os.Rename(dir, kept); err != nil {
		return "", fmt.Errorf("keep temporary folder: %w", err)
	}
	held.Lock()
	f := held.dirs[dir]
	delete(held.dirs, dir)
	held.Unlock()
	if f != nil {
		_ = f.Close() // nothing was written
	}
	return kept, nil
}

// Remove removes a folder and all below it, whatever modes the files have. A
// folder that is gone is no error.
func Remove(dir string) error {
	held.Lock()
	f := held.dirs[dir]
	delete(held.dirs, dir)
	held.Unlock()
	err := removeAll(dir)
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// removeAll opens the folders that their owner has closed to itself, where that
// was in the way.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, _ error) error { // the removal tells
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	_ = root.Close() // nothing was written
	return os.RemoveAll(dir)
}

// Sweep removes this user's folders whose owner is gone, and returns their
// paths. What cannot be removed is left for the next time.
func Sweep() []string {
	return abandoned(func(dir string) bool { return removeAll(dir) == nil })
}

// Abandoned are the paths of the folders that Sweep would remove.
func Abandoned() []string {
	return abandoned(func(string) bool { return true })
}

// abandoned calls do with each folder that has no owner, while it has the lock,
// and returns those for which it was true.
func abandoned(do func(dir string) bool) []string {
	names, err := os.ReadDir(os.TempDir())
	if err != nil {
		return nil
	}
	var done []string
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
			done = append(done, dir)
		}
		_ = f.Close() // nothing was written
	}
	return done
}
