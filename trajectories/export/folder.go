package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ManifestFile is in the folder of every export, and says what made it.
const ManifestFile = "export.json"

// ErrFolder is wrapped by the error for a folder that may not be written.
var ErrFolder = errors.New("folder")

// folder is where an export grows, beside the folder that it becomes. Nobody
// takes the half of an export for the whole.
type folder struct {
	dir, tmp string
	replace  bool
	done     bool
}

// newFolder refuses what has files of something else in it.
func newFolder(dir string, replace bool) (*folder, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: where to?", ErrFolder)
	}
	dir = filepath.Clean(dir)
	if err := free(dir, replace); err != nil {
		return nil, err
	}
	above := filepath.Dir(dir)
	if err := os.MkdirAll(above, 0o755); err != nil { //nolint:gosec // results are for sharing
		return nil, fmt.Errorf("make folder: %w", err)
	}
	tmp, err := os.MkdirTemp(above, "."+filepath.Base(dir)+".partial-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // as above
		return nil, fmt.Errorf("make folder: %w", err)
	}
	return &folder{dir: dir, tmp: tmp, replace: replace}, nil
}

func free(dir string, replace bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		if info, serr := os.Stat(dir); serr == nil && !info.IsDir() {
			return fmt.Errorf("%w: %s is a file, and an export is a folder", ErrFolder, dir)
		}
		return fmt.Errorf("make folder: %w", err)
	}
	_, err = os.Lstat(filepath.Join(dir, ManifestFile))
	switch {
	case err == nil && replace:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s holds an export already; give another one with -o, or --force to replace it", ErrFolder, dir)
	}
	return fmt.Errorf("%w: %s is not empty, and no export; give another one with -o", ErrFolder, dir)
}

// commit gives the folder its name.
func (f *folder) commit() error {
	if err := free(f.dir, f.replace); err != nil { // somebody came first
		return err
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("replace folder: %w", err)
	}
	if err := os.Rename(f.tmp, f.dir); err != nil {
		return fmt.Errorf("name folder: %w", err)
	}
	f.done = true
	return nil
}

// abandon removes what did not become an export.
func (f *folder) abandon() {
	if !f.done {
		_ = os.RemoveAll(f.tmp) // its name says what it is, should it stay
	}
}
