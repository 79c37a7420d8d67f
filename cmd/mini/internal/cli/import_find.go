package cli

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// trajectoryFile is a file to import.
type trajectoryFile struct {
	convert.Found
	inFolder bool // a folder was named, not the file itself
}

// findTrajectories walks the folders among paths. The run that is written to is
// left out. What cannot be looked into is among the files, with the reason.
func findTrajectories(paths []string, run string) ([]trajectoryFile, error) {
	own, _ := os.Stat(run) // it need not be there
	enter := func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || own == nil || !os.SameFile(info, own)
	}
	var files []trajectoryFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, usagef("%s: %w", path, errors.Unwrap(err))
		}
		if !info.IsDir() {
			files = append(files, trajectoryFile{Found: convert.Found{Path: path}})
			continue
		}
		for f := range convert.Walk(path, enter) {
			files = append(files, trajectoryFile{f, true})
		}
	}
	return files, nil
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
