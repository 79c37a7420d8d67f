package task

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree/undo"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/task/projectdocs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

// readProjectDocs reads the instructions of the user and, if commands run on this machine, of
// the project, and says which there are. Only interactive sessions and the print mode, which says
// nothing, have them. A file that cannot be read is a warning.
func (t *session) readProjectDocs() error {
	if !t.Interactive && !t.options.print || t.options.noProjectDocs || !t.cfg.Agent.ProjectDocs {
		return nil
	}
	var userDir, dir string
	if file := userdirs.ConfigFile(); file != "" {
		userDir = filepath.Dir(file)
	}
	if envopen.IsHostClass(t.cfg.Environment.Class) {
		dir = t.dir()
	}
	var err error
	if t.docs, err = projectdocs.Read(userDir, dir); err != nil {
		if _, err := fmt.Fprintln(t.Err, "mini: warning:", cmdutil.Sanitize(strings.ReplaceAll(err.Error(), "\n", "; "))); err != nil {
			return err
		}
	}
	if len(t.docs) == 0 || t.options.print {
		return nil
	}
	var names []string
	for _, f := range t.docs {
		size := unit.Size(int64(f.Bytes))
		if f.IsCut {
			size = "the first " + size
		}
		names = append(names, fmt.Sprintf("%s (%s)", cmdutil.Sanitize(f.Path), size))
	}
	_, err = fmt.Fprintf(t.Err, "mini: part of the prompt; --no-project-docs leaves it out:\n  %s\n", strings.Join(names, "\n  "))
	return err
}

// taskFiles are the paths of the journal and the trajectory.
type taskFiles struct{ journal, traj string }

// prefix returns the prefix that the names of all files of the session have.
func (f taskFiles) prefix() string {
	return strings.TrimSuffix(filepath.Base(f.journal), "journal.jsonl")
}

// newTaskFiles returns the paths for -o, or else new paths in the user's state folder. It returns an
// error if one of the files exists.
func newTaskFiles(output string, now time.Time) (taskFiles, error) {
	if output == "" {
		output = filepath.Join(userdirs.StateDir(), "mini", now.Format("20060102-150405.000"))
	}
	dir, name := output, taskID
	if base, ok := strings.CutSuffix(output, ".json"); ok {
		base = strings.TrimSuffix(base, ".traj")
		dir, name = filepath.Dir(base), filepath.Base(base)
	}
	f := taskFiles{
		journal: filepath.Join(dir, name+".journal.jsonl"),
		traj:    filepath.Join(dir, name+".traj.json"),
	}
	if strings.HasSuffix(output, ".json") {
		f.traj = output
	}
	for _, path := range []string{f.journal, f.traj} {
		if _, err := os.Stat(path); err == nil {
			return f, usage.Errorf("the file %s exists, and -o never overwrites one; give another name", path)
		}
	}
	return f, nil
}

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
