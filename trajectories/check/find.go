package check

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Find are the trajectories in a folder and below it, in order; those of a run
// with all its attempts. What is none by its name or its first bytes is counted,
// not returned. Links are not followed.
func Find(dir string) (files []string, others int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != dir:
			return filepath.SkipDir
		case !e.Type().IsRegular():
		case trajectory(path):
			files = append(files, path)
		default:
			others++
		}
		return nil
	})
	return files, others, err
}

// trajectory tells from a file's beginning whether it is one.
func trajectory(path string) bool {
	name := filepath.Base(path)
	if !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".jsonl") {
		return false
	}
	if name == "journal.jsonl" || strings.HasSuffix(name, ".traj.json") {
		return true
	}
	f, err := os.Open(path) //nolint:gosec // G304: looking into the folder that was named is the purpose
	if err != nil {
		return true // checking it says why it cannot be read
	}
	defer func() { _ = f.Close() }()
	head, _ := io.ReadAll(io.LimitReader(f, peek))
	return KindOf(name, head) != Unknown
}
