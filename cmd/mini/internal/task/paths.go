package task

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree/undo"
)

const (
	maxPaths      = 20_000 // files in a folder that is no repository
	pathsDuration = 10 * time.Second
)

// listPaths returns the files of a folder for completion, relative to it: those that git does not
// ignore or, outside of repositories, the first files that are not in hidden folders. If it fails,
// there are none. hidden are variables removed from the environment of git.
func listPaths(ctx context.Context, dir string, hidden []string) (paths []string) {
	ctx, cancel := context.WithTimeout(ctx, pathsDuration)
	defer cancel()
	if files, err := undo.ListFiles(ctx, dir, hidden...); err == nil {
		return files
	}
	entries := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch entries++; {
		case ctx.Err() != nil || entries > 4*maxPaths || len(paths) == maxPaths:
			return fs.SkipAll
		case err != nil:
			return nil //nolint:nilerr // the folder cannot be read
		case path != dir && d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if name, err := filepath.Rel(dir, path); err == nil {
			paths = append(paths, name)
		}
		return nil
	})
	return paths
}
