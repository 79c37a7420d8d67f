package evaluate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// cache is the path of a folder of verdicts that several runs and processes
// share; "" means no cache. Each verdict has a subfolder, named after its cache
// key and created atomically. Other users may write entries, so find validates
// them.
type cache string

// dir returns the folder of a verdict.
func (c cache) dir(key string) string { return filepath.Join(string(c), key[:2], key) }

func recordPath(dir string) string { return filepath.Join(dir, "verdict.json") }

// find returns the verdict with this key and the files of its run, or false if
// the cache has no valid one.
func (c cache) find(key string) (reusableVerdict, bool) {
	if c == "" {
		return reusableVerdict{}, false
	}
	root, err := rootdir.Open(string(c))
	if err != nil {
		return reusableVerdict{}, false
	}
	defer root.Close() //nolint:errcheck // only read
	dir := c.dir(key)
	r, err := verdicts.ReadRecord(root, recordPath(dir))
	if err != nil || r.Basis.Key != key || !r.IsConsistent() || !r.Class.IsFinal() || !isComplete(root, r, grade.FilesIn(dir)) {
		return reusableVerdict{}, false
	}
	return reusableVerdict{record: r, files: grade.FilesIn(dir), from: dir}, true
}

// put adds a verdict to the cache, with files from runDir. If the cache has the
// same verdict, put updates only its record.
func (c cache) put(key string, runDir *rootdir.Dir, files grade.Files, r verdicts.Record) error {
	if err := os.MkdirAll(string(c), 0o755); err != nil { //nolint:gosec // results are shared between users
		return err
	}
	root, err := rootdir.Open(string(c))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // writes report their own errors
	dir := c.dir(key)
	if existing, ok := c.find(key); ok && existing.record.VerdictRun().Start.Equal(r.VerdictRun().Start) {
		return verdicts.Write(root, recordPath(dir), r) // the same verdict, with extra runs
	}
	parent := filepath.Dir(dir)
	if err := root.MkdirAll(parent); err != nil {
		return err
	}
	tmp, err := root.MkdirTemp(parent, ".new-")
	if err != nil {
		return err
	}
	defer root.RemoveAll(tmp) //nolint:errcheck // already renamed unless put fails
	if err := copyFiles(runDir, files, root, grade.FilesIn(tmp)); err != nil {
		return err
	}
	if err := verdicts.Write(root, recordPath(tmp), r); err != nil {
		return err
	}
	return replaceDir(root, tmp, dir)
}

// replaceDir renames the folder tmp to dir, replacing an existing folder.
func replaceDir(root *rootdir.Dir, tmp, dir string) error {
	old := tmp + "-old"
	defer root.RemoveAll(old) //nolint:errcheck // no reader uses this name
	if err := root.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", dir, err)
	}
	err := root.Rename(tmp, dir)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process has added the same verdict
	}
	return err
}
