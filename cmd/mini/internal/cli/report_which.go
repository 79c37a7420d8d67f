package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/runner"
)

// defaultRuns is where mini bench puts runs that are given no folder.
const defaultRuns = "mini-runs"

// noRun says what the user may have meant.
func noRun(dir string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		text := fmt.Sprintf("%s: there is no such folder", dir)
		if near := newestRun(defaultRuns); near != "" {
			text += "; the newest run here is " + near
		}
		return usagef("%s", text)
	case !errors.Is(err, runner.ErrNoRun):
		return before(err)
	}
	above, id, within := runAbove(dir)
	switch {
	case within && id == "":
		return usagef("%s belongs to a run: mini report %s", dir, above)
	case within && filepath.Base(dir) == id:
		return usagef("%s is an instance of a run: mini report %s -i %s", dir, above, id)
	case within:
		return usagef("%s belongs to an instance of a run: mini report %s -i %s", dir, above, id)
	}
	if info, serr := os.Stat(dir); serr == nil && !info.IsDir() {
		return usagef("%s is a file; give the folder of the run: mini report %s", dir, filepath.Dir(dir))
	}
	if isPeersRun(dir) {
		return usagef("%s: this is a run of mini-swe-agent's, which mini report cannot read yet", dir)
	}
	if near := newestRun(dir); near != "" {
		return usagef("%s holds runs, and is none itself; the newest one: mini report %s", dir, near)
	}
	return before(err)
}

// newestRun is the run in a folder of runs that was touched last.
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

// runAbove finds the run that a path is in, and the instance that it belongs
// to, if any. The path of the run is as relative as the one that was given.
func runAbove(path string) (run, id string, ok bool) {
	below, err := filepath.Abs(path)
	if err != nil {
		return "", "", false
	}
	run = path
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		run, below = filepath.Dir(path), filepath.Dir(below)
	}
	for range 3 { // RUN/<id>/attempts/<n>
		id = filepath.Base(below)
		run, below = filepath.Join(run, ".."), filepath.Dir(below)
		if !isRun(below) {
			continue
		}
		for _, name := range []string{"attempts", id + ".traj.json"} {
			if exists(filepath.Join(below, id, name)) {
				return run, id, true
			}
		}
		return run, "", true
	}
	return "", "", false
}

// isPeersRun goes by what mini-swe-agent leaves in the folder of a batch.
func isPeersRun(dir string) bool {
	files := os.DirFS(dir)
	if _, err := fs.Stat(files, "preds.json"); err == nil {
		return true
	}
	found, err := fs.Glob(files, "*/*.traj.json")
	return err == nil && len(found) > 0
}

// isRun goes by the file that every run has from its beginning.
func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "run.json"))
	return err == nil
}
