package evaluate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// cache is a folder of verdicts that several runs share, and several minis at
// the same time; "" is none. Each verdict has a folder, named by its key, which
// appears there whole. What is in one may be anybody's who can write to the
// cache: it is held against its key, and against itself.
type cache string

// at is the folder of a verdict.
func (c cache) at(key string) string { return filepath.Join(string(c), key[:2], key) }

func recordIn(dir string) string { return filepath.Join(dir, "verdict.json") }

// find is the verdict of a key, with the files of its run.
func (c cache) find(key string) (found, bool) {
	if c == "" {
		return found{}, false
	}
	root, err := rootdir.Open(string(c))
	if err != nil {
		return found{}, false
	}
	defer root.Close() //nolint:errcheck // only read
	dir := c.at(key)
	r, err := verdicts.ReadRecord(root, recordIn(dir))
	if err != nil || r.Basis.Key != key || !r.IsSound() || !r.Class.Final() || !complete(root, r, grade.FilesIn(dir)) {
		return found{}, false
	}
	return found{record: r, files: grade.FilesIn(dir), from: dir}, true
}

// put enters a verdict, or what has become of it.
func (c cache) put(key string, run *rootdir.Dir, from grade.Files, r verdicts.Record) error {
	if err := os.MkdirAll(string(c), 0o755); err != nil { //nolint:gosec // results are for sharing
		return err
	}
	root, err := rootdir.Open(string(c))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all is written
	at := c.at(key)
	if there, ok := c.find(key); ok && there.record.VerdictRun().Start.Equal(r.VerdictRun().Start) {
		return verdicts.Write(root, recordIn(at), r) // further runs of the same
	}
	around := filepath.Dir(at)
	if err := root.MkdirAll(around); err != nil {
		return err
	}
	made, err := root.MkdirTemp(around, ".new-")
	if err != nil {
		return err
	}
	defer root.RemoveAll(made) //nolint:errcheck // mostly it was renamed
	if err := copyFiles(run, from, root, grade.FilesIn(made)); err != nil {
		return err
	}
	if err := verdicts.Write(root, recordIn(made), r); err != nil {
		return err
	}
	return replace(root, made, at)
}

// replace puts a folder in the place of another, which may be there.
func replace(root *rootdir.Dir, made, at string) error {
	gone := made + "-old"
	defer root.RemoveAll(gone) //nolint:errcheck // nobody looks for it
	if err := root.Rename(at, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", at, err)
	}
	err := root.Rename(made, at)
	if errors.Is(err, fs.ErrExist) {
		return nil // another mini has entered the same verdict meanwhile; its own will do
	}
	return err
}
