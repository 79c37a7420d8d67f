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
	var files []trajectoryFile
	own, _ := os.Stat(run) // it need not be there
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil { // the others go on
			files = append(files, trajectoryFile{path, true, fmt.Errorf("%s: %w", path, unwrapPath(err))})
			return nil
		}
		if d.IsDir() {
			if info, err := d.Info(); err == nil && own != nil && os.SameFile(info, own) {
				return fs.SkipDir
			}
			return nil
		}
		if isFile(path, d) && looksLikeTrajectory(path) {
			files = append(files, trajectoryFile{path: path, found: true})
		}
		return nil
	})
	return files
}

// isFile follows links to files, of which the caches of downloads are full, and
// not those to folders, which may go round in circles.
func isFile(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
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
