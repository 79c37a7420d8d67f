package cli

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// trajectoryFile is a file to import. found says that a folder was named, not
// the file itself.
type trajectoryFile struct {
	path   string
	found  bool
	closed error
}

// findTrajectories walks the folders among paths. The run that is written to is
// left out. What cannot be looked into is among the files, with the reason.
func findTrajectories(paths []string, run string) ([]trajectoryFile, error) {
	var files []trajectoryFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, usagef("%s: %w", path, unwrapPath(err))
		}
		if !info.IsDir() {
			files = append(files, trajectoryFile{path: path})
			continue
		}
		files = append(files, walkTrajectories(path, run)...)
	}
	return files, nil
}

func unwrapPath(err error) error {
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // as os returns it
		return p.Err
	}
	return err
}

func walkTrajectories(root, run string) []trajectoryFile {
	own, _ := os.Stat(run) // it need not be there
	enter := func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || own == nil || !os.SameFile(info, own)
	}
	var files []trajectoryFile
	for f := range convert.Walk(root, enter) {
		files = append(files, trajectoryFile{f.Path, true, f.Err})
	}
	return files
}

// recordsError is about the records of a file, not about where they are written.
type recordsError struct{ err error }

func (e *recordsError) Error() string { return e.err.Error() }
func (e *recordsError) Unwrap() error { return e.err }

// noteErrors tells what is wrong with a file from what is wrong with the run.
func noteErrors(records iter.Seq2[trajectories.Record, error], path string) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			if err != nil {
				if !strings.HasPrefix(err.Error(), path) {
					err = fmt.Errorf("%s: %w", path, err)
				}
				err = &recordsError{err}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
