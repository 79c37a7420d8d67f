package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// taskFiles are where the one attempt is kept.
type taskFiles struct{ journal, traj string }

// stem begins the names of all files of the attempt.
func (f taskFiles) stem() string {
	return strings.TrimSuffix(filepath.Base(f.journal), "journal.jsonl")
}

// newTaskFiles picks the files: those of -o, or new ones in the user's state
// folder. An old journal is never overwritten.
func newTaskFiles(output string, now time.Time) (taskFiles, error) {
	if output == "" {
		output = filepath.Join(stateDir(), "mini", now.Format("20060102-150405.000"))
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
			return f, usagef("%s is there already; give another name with -o", path)
		}
	}
	return f, nil
}

// make makes their folder.
func (f taskFiles) make() error {
	if err := os.MkdirAll(filepath.Dir(f.journal), 0o700); err != nil {
		return fmt.Errorf("make folder for the trajectory: %w", err)
	}
	return nil
}

// stateDir follows the XDG base directory specification.
func stateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return os.TempDir()
	}
	return filepath.Join(home, ".local", "state")
}
