package cli

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// trajectoryFile is a file to import. found says that a folder was named, not
// the file itself.
type trajectoryFile struct {
	path  string
	found bool
}

// findTrajectories walks the folders among paths. The run that is written to is
// left out.
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
		found, err := walkTrajectories(path, run)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

func unwrapPath(err error) error {
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // as os returns it
		return p.Err
	}
	return err
}

func walkTrajectories(root, run string) ([]trajectoryFile, error) {
	var files []trajectoryFile
	own, _ := os.Stat(run) // it need not be there
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("walk %s: %w", root, err)
		}
		if d.IsDir() {
			if info, err := d.Info(); err == nil && own != nil && os.SameFile(info, own) {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && looksLikeTrajectory(path) {
			files = append(files, trajectoryFile{path, true})
		}
		return nil
	})
	return files, err
}

// looksLikeTrajectory goes by the ending. In the folder of a run the journals
// are the attempts; what is derived from them is left out, and so are mini's
// other files.
func looksLikeTrajectory(path string) bool {
	name := filepath.Base(path)
	if !slices.ContainsFunc([]string{".json", ".jsonl", ".traj"}, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return false
	}
	dir := filepath.Dir(path)
	if strings.HasSuffix(name, ".traj.json") && isDir(filepath.Join(dir, "attempts")) {
		return false
	}
	return name != "events.jsonl" && name != "preds.json" && name != "results.json" && name != "run.json"
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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
