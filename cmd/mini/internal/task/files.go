package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

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

// makeDir creates the folder of the files.
func (f taskFiles) makeDir() error {
	if err := os.MkdirAll(filepath.Dir(f.journal), 0o700); err != nil {
		return fmt.Errorf("make folder for the trajectory: %w", err)
	}
	return nil
}
