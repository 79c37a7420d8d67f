package formats

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// Candidate is a file that may be a trajectory, judging by its name. Err is set if
// Path could not be read.
type Candidate struct {
	Path string
	Err  error
}

// FindFiles finds files in root and its subfolders that may be trajectories. enter
// returns whether to search a folder; nil searches all. A folder that cannot be read
// yields a Candidate with an error, and the search continues.
func FindFiles(root string, enter func(dir string) bool) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		errStop := errors.New("stop")
		if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			root += string(filepath.Separator) // follow a link given by the user
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			var candidate Candidate
			switch {
			case err != nil:
				candidate = Candidate{path, fmt.Errorf("%s: %w", path, unwrapPath(err))}
			case d.IsDir() && enter != nil && !enter(path):
				return fs.SkipDir
			case d.IsDir() && path != root && trajectories.IsChildrenFolder(path): // formats.Open reads them with their parent
				return fs.SkipDir
			case d.IsDir() || !isFile(path, d) || !mayBeTrajectory(path):
				return nil
			default:
				candidate.Path = path
			}
			if !yield(candidate) {
				return errStop
			}
			return nil
		})
	}
}

// isFile follows symbolic links to files, since download caches consist of them. It
// does not follow links to folders, which may form cycles.
func isFile(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// mayBeTrajectory judges by the file name. In the folder of a run it selects the
// journals and skips the files derived from them.
func mayBeTrajectory(path string) bool {
	name := filepath.Base(path)
	if !slices.ContainsFunc([]string{".json", ".jsonl", ".traj"}, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return false
	}
	if stem, ok := strings.CutSuffix(name, ".traj.json"); ok {
		// A run has journals in attempts; a session has NAME.journal.jsonl in the
		// same folder.
		dir := filepath.Dir(path)
		if _, err := os.Lstat(filepath.Join(dir, stem+".journal.jsonl")); err == nil || isDir(filepath.Join(dir, "attempts")) {
			return false
		}
	}
	return name != "events.jsonl" && name != "preds.json" && name != "results.json" && name != "run.json"
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
