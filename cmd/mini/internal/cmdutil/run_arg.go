package cmdutil

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
)

// DefaultRunsDir is where mini bench creates runs without -o.
const DefaultRunsDir = "mini-runs"

// ExactlyOneRun requires one argument, the folder of a run.
func ExactlyOneRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	text := cmd.CommandPath() + " takes the folder of a run, and nothing else"
	if run := newestRun(DefaultRunsDir); run != "" {
		text += "; the newest one here is " + run
	}
	return usage.Errorf("%s; see %s --help", text, cmd.CommandPath())
}

// RunFolderError turns an error of reading the run in dir into a usage error. If dir is missing or
// not a run, the usage error suggests a run that the user may have meant, if there is one.
func RunFolderError(dir string, err error) error {
	missing := errors.Is(err, os.ErrNotExist)
	if !missing && !errors.Is(err, runner.ErrNotRunFolder) {
		return usage.Wrap(err)
	}
	if run, id, ok := FindRunAbove(dir); ok && !missing {
		if id != "" {
			return usage.Errorf("%s belongs to the instance %s of a run; its folder is %s", dir, id, text.ShellQuote(run))
		}
		return usage.Errorf("%s belongs to a run; its folder is %s", dir, text.ShellQuote(run))
	}
	if newest := newestRun(dir); newest != "" {
		return usage.Errorf("%s contains runs but is not a run; the newest one is %s", dir, text.ShellQuote(newest))
	}
	if !missing {
		return usage.Errorf("%w; mini import makes a run from trajectories of other agents", err)
	}
	text := fmt.Sprintf("%s: there is no such folder", dir)
	if newest := newestRun(DefaultRunsDir); newest != "" {
		text += "; the newest run here is " + newest
	}
	return usage.Errorf("%s", text)
}

// newestRun returns the most recently modified run in a folder of runs, or "".
func newestRun(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	newest, modTime := "", time.Time{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && info.ModTime().After(modTime) && isRun(path) {
			newest, modTime = path, info.ModTime()
		}
	}
	return newest
}

// FindRunAbove returns the folder of the run that contains path; ok is false if none of the four
// folders above path is a run. id is the instance that path belongs to, or "". run is relative if
// path is relative.
func FindRunAbove(path string) (run, id string, ok bool) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", "", false
	}
	run = path
	for range 4 { // RUN/<id>/attempts/<n>/journal.jsonl
		id = filepath.Base(dir)
		run, dir = filepath.Join(run, ".."), filepath.Dir(dir)
		if !isRun(dir) {
			continue
		}
		if !FileExists(filepath.Join(dir, id, "attempts")) && !FileExists(filepath.Join(dir, id, id+".traj.json")) {
			id = ""
		}
		return run, id, true
	}
	return "", "", false
}

// isRun reports whether dir is a run folder. Every run has run.json from the start.
func isRun(dir string) bool { return FileExists(filepath.Join(dir, "run.json")) }
