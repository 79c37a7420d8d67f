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
	if near := newestRun(DefaultRunsDir); near != "" {
		text += "; the newest one here is " + near
	}
	return usage.Errorf("%s; see %s --help", text, cmd.CommandPath())
}

// RunFolderError turns an error of reading a run folder into a usage error with a suggestion.
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
	if near := newestRun(dir); near != "" {
		return usage.Errorf("%s contains runs but is not a run; the newest one is %s", dir, text.ShellQuote(near))
	}
	if !missing {
		return usage.Errorf("%w; mini import makes one of the trajectories of other agents", err)
	}
	text := fmt.Sprintf("%s: there is no such folder", dir)
	if near := newestRun(DefaultRunsDir); near != "" {
		text += "; the newest run here is " + near
	}
	return usage.Errorf("%s", text)
}

// newestRun returns the most recently modified run in a folder of runs, or "".
func newestRun(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	newest, when := "", time.Time{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && info.ModTime().After(when) && isRun(path) {
			newest, when = path, info.ModTime()
		}
	}
	return newest
}

// FindRunAbove finds the run that contains a path, and the instance that the path belongs to,
// if any. The result is relative if path is.
func FindRunAbove(path string) (run, id string, ok bool) {
	below, err := filepath.Abs(path)
	if err != nil {
		return "", "", false
	}
	run = path
	for range 4 { // RUN/<id>/attempts/<n>/journal.jsonl
		id = filepath.Base(below)
		run, below = filepath.Join(run, ".."), filepath.Dir(below)
		if !isRun(below) {
			continue
		}
		if !FileExists(filepath.Join(below, id, "attempts")) && !FileExists(filepath.Join(below, id, id+".traj.json")) {
			id = ""
		}
		return run, id, true
	}
	return "", "", false
}

// isRun reports whether dir is a run folder. Every run has run.json from the start.
func isRun(dir string) bool { return FileExists(filepath.Join(dir, "run.json")) }
