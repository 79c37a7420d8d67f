package check

import (
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
)

// Find returns the trajectories in a folder and its subfolders in lexical order, and the
// number of other files. It detects trajectories by their names and first bytes. For a run,
// it returns the files of all attempts. It does not follow symbolic links, and skips folders
// whose names begin with a dot.
func Find(dir string) (files []string, others int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != dir:
			return filepath.SkipDir
		case !e.Type().IsRegular():
		case isTrajectory(path):
			files = append(files, path)
		default:
			others++
		}
		return nil
	})
	return files, others, err
}

// isTrajectory reports whether a file is a trajectory, by its name and first bytes.
func isTrajectory(path string) bool {
	name := filepath.Base(path)
	if !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".jsonl") {
		return false
	}
	if name == "journal.jsonl" || strings.HasSuffix(name, ".traj.json") {
		return true
	}
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return true // File reports the error
	}
	defer func() { _ = f.Close() }()
	head, _ := io.ReadAll(io.LimitReader(f, headSize))
	return DetectKind(name, head) != Unknown
}
