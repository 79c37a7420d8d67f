package check

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Find returns the trajectories in a folder and its subfolders, in order. For a run
// these are all attempts. Other files are counted, judging by name and first bytes.
// Symbolic links are not followed.
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

// isTrajectory detects a trajectory by the beginning of the file.
func isTrajectory(path string) bool {
	name := filepath.Base(path)
	if !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".jsonl") {
		return false
	}
	if name == "journal.jsonl" || strings.HasSuffix(name, ".traj.json") {
		return true
	}
	f, err := os.Open(path) //nolint:gosec // G304: looking into the folder that was named is the purpose
	if err != nil {
		return true // checking it reports the error
	}
	defer func() { _ = f.Close() }()
	head, _ := io.ReadAll(io.LimitReader(f, peek))
	return KindOf(name, head) != Unknown
}
