package convert

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

// Found is a file that may be one of trajectories, by its name. Err says why a
// place could not be looked into, beginning with its path.
type Found struct {
	Path string
	Err  error
}

// Walk finds the files below a folder that may be trajectories: their content
// decides. enter says whether to look into a folder; nil looks into all. What
// cannot be looked into is among them, and the others go on.
func Walk(root string, enter func(dir string) bool) iter.Seq[Found] {
	return func(yield func(Found) bool) {
		stopped := errors.New("nobody wants more")
		if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			root += string(filepath.Separator) // a link that was named is followed
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			var found Found
			switch {
			case err != nil:
				found = Found{path, fmt.Errorf("%s: %w", path, unwrapPath(err))}
			case d.IsDir() && enter != nil && !enter(path):
				return fs.SkipDir
			case d.IsDir() && path != root && trajectories.HoldsChildren(path): // they come with their parent
				return fs.SkipDir
			case d.IsDir() || !isFile(path, d) || !mayBeTrajectory(path):
				return nil
			default:
				found.Path = path
			}
			if !yield(found) {
				return stopped
			}
			return nil
		})
	}
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

// mayBeTrajectory goes by the ending. In the folder of a run the journals are the
// attempts; what is derived from them is left out, and so are mini's other files.
func mayBeTrajectory(path string) bool {
	name := filepath.Base(path)
	if !slices.ContainsFunc([]string{".json", ".jsonl", ".traj"}, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return false
	}
	if stem, ok := strings.CutSuffix(name, ".traj.json"); ok {
		// A run has journals in attempts, and a session has NAME.journal.jsonl beside it.
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
