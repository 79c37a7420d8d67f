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

// Candidate is a file whose name is that of a trajectory, or an error.
type Candidate struct {
	Path string
	Err  error // set if Path could not be read
}

// FindFiles yields the files in root and its subfolders that have names of trajectories,
// without the journals of children. enter reports whether to search a folder; if enter is
// nil, FindFiles searches all. For a folder that cannot be read, FindFiles yields a
// Candidate with an error and continues.
func FindFiles(root string, enter func(dir string) bool) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		errStop := errors.New("stop")
		if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			root += string(filepath.Separator) // makes WalkDir follow a link that the user named
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			var candidate Candidate
			switch {
			case err != nil:
				candidate = Candidate{path, fmt.Errorf("%s: %w", path, unwrapPath(err))}
			case d.IsDir() && enter != nil && !enter(path):
				return fs.SkipDir
			case d.IsDir() && path != root && trajectories.IsChildrenFolder(path): // OpenAll reads children with their parent
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

// isFile reports whether path is a file or a symbolic link to a file. Download caches
// consist of such links. FindFiles does not follow links to folders, since they may form
// cycles.
func isFile(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// mayBeTrajectory reports whether the name of a file is that of a trajectory. In a run or
// a session, it selects journals and no files that are derived from them.
func mayBeTrajectory(path string) bool {
	name := filepath.Base(path)
	if !slices.ContainsFunc([]string{".json", ".jsonl", ".traj"}, func(suffix string) bool { return strings.HasSuffix(name, suffix) }) {
		return false
	}
	if stem, ok := strings.CutSuffix(name, ".traj.json"); ok {
		// The journals of a run are in the folder "attempts"; that of a session is
		// NAME.journal.jsonl in the same folder.
		dir := filepath.Dir(path)
		if _, err := os.Lstat(filepath.Join(dir, stem+".journal.jsonl")); err == nil || isDir(filepath.Join(dir, "attempts")) {
			return false
		}
	}
	return name != "events.jsonl" && name != "preds.json" && name != "results.json" && name != "run.json"
}

// Journal returns the journal that mini wrote the .traj.json file path from: NAME.journal.jsonl
// of a session, or that of the only attempt of a run's instance. It returns path if it finds none.
func Journal(path string) string {
	stem, ok := strings.CutSuffix(path, ".traj.json")
	if !ok {
		return path
	}
	journal := stem + ".journal.jsonl"
	attempts := filepath.Join(filepath.Dir(path), "attempts")
	if numbered, err := os.ReadDir(attempts); err == nil && len(numbered) == 1 {
		journal = filepath.Join(attempts, numbered[0].Name(), "journal.jsonl")
	}
	if info, err := os.Stat(journal); err != nil || !info.Mode().IsRegular() {
		return path
	}
	return journal
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
