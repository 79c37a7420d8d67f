package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ManifestFile is the name of the file in an output folder that describes the export.
const ManifestFile = "export.json"

// ErrFolder is wrapped by errors about the output folder.
var ErrFolder = errors.New("folder")

// folder is a temporary folder. It gets its final name when the export is complete, so
// that an incomplete export cannot be mistaken for a complete one.
type folder struct {
	dir, tmp  string // the final and the temporary path
	replace   bool   // Config.Overwrite
	committed bool
}

// newFolder creates the temporary folder next to dir. It fails if dir exists and is not
// empty, unless dir is an export and replace is set.
func newFolder(dir string, replace bool) (*folder, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no output folder", ErrFolder)
	}
	dir = filepath.Clean(dir)
	if err := checkReplaceable(dir, replace); err != nil {
		return nil, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // results are for sharing
		return nil, fmt.Errorf("create folder: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".partial-")
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // as above
		return nil, fmt.Errorf("create folder: %w", err)
	}
	return &folder{dir: dir, tmp: tmp, replace: replace}, nil
}

// checkReplaceable checks that an export may create or replace dir.
func checkReplaceable(dir string, replace bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		if info, serr := os.Stat(dir); serr == nil && !info.IsDir() {
			return fmt.Errorf("%w: %s is a file, not a folder", ErrFolder, dir)
		}
		return fmt.Errorf("create folder: %w", err)
	}
	_, err = os.Lstat(filepath.Join(dir, ManifestFile))
	switch {
	case err == nil && replace:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s contains an export; use another folder with -o, or replace it with --force", ErrFolder, dir)
	}
	return fmt.Errorf("%w: %s is not empty; use another folder with -o", ErrFolder, dir)
}

// commit renames the folder to its final name.
func (f *folder) commit() error {
	if err := checkReplaceable(f.dir, f.replace); err != nil { // dir may have changed since newFolder
		return err
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("replace folder: %w", err)
	}
	if err := os.Rename(f.tmp, f.dir); err != nil {
		return fmt.Errorf("rename folder: %w", err)
	}
	f.committed = true
	return nil
}

// cleanup removes the temporary folder, unless it was renamed.
func (f *folder) cleanup() {
	if !f.committed {
		_ = os.RemoveAll(f.tmp) // on failure, the name of the folder shows that it is incomplete
	}
}
