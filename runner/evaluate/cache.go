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

// The cache is a folder of verdicts that several runs and processes share. Each
// verdict has a subfolder, named after its key and created atomically.

// cacheDir returns the folder of a verdict in the cache.
func (s *store) cacheDir(key string) string { return filepath.Join(s.cache, key[:2], key) }

func recordPath(dir string) string { return filepath.Join(dir, "verdict.json") }

// findInCache returns the verdict with this key that counts, and the files of its
// run.
func (s *store) findInCache(key string) (verdict, bool) {
	if s.cache == "" {
		return verdict{}, false
	}
	root, err := rootdir.Open(s.cache)
	if err != nil {
		return verdict{}, false
	}
	defer root.Close() //nolint:errcheck // only read
	dir := s.cacheDir(key)
	r, err := verdicts.ReadRecord(root, recordPath(dir))
	if err != nil || r.Basis.Key != key || !r.IsConsistent() || !r.Class.IsFinal() || !isComplete(root, r, grade.FilesIn(dir)) {
		return verdict{}, false
	}
	r, ok := s.accept(r)
	return verdict{record: r, files: grade.FilesIn(dir), from: dir}, ok
}

// addToCache adds a signed record to the cache, with the files of its verdict run.
// If the cache has the same verdict, addToCache updates only its record.
func (s *store) addToCache(files grade.Files, r verdicts.Record) error {
	if err := os.MkdirAll(s.cache, 0o755); err != nil { //nolint:gosec // others may read verdicts
		return err
	}
	root, err := rootdir.Open(s.cache)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // writes report their own errors
	dir := s.cacheDir(r.Basis.Key)
	if existing, ok := s.findInCache(r.Basis.Key); ok && existing.record.VerdictRun().Start.Equal(r.VerdictRun().Start) {
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
	defer root.RemoveAll(tmp) //nolint:errcheck // already renamed unless addToCache fails
	if err := copyFiles(s.root, files, root, grade.FilesIn(tmp)); err != nil {
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
