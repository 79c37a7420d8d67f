package check_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/check"
	"github.com/minibench/mini/trajectories/convert"
)

// What mini makes of other agents' files is by the rules of journals, and so is
// the .traj.json of it.
func TestImportsAreByTheRules(t *testing.T) {
	t.Run("testdata", func(t *testing.T) { importsAreByTheRules(t, "../convert/testdata") })
	t.Run("real", func(t *testing.T) { importsAreByTheRules(t, corpustest.Beside(t, "trajectories")) })
}

func importsAreByTheRules(t *testing.T, folder string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "golden" || d.Name() == "cases" || d.Name() == "predictions"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		f, err := convert.Open(path)
		if err != nil {
			return nil //nolint:nilerr // no trajectory, or one that says several; their own tests say which
		}
		n++
		journal, traj := filepath.Join(t.TempDir(), "journal.jsonl"), filepath.Join(t.TempDir(), "a.traj.json")
		if err := trajectories.Write(journal, f.Records); err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if err := trajectories.Derive(journal, traj); err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		for _, file := range []string{journal, traj} {
			if r := check.File(file, check.Options{}); len(r.Problems) > 0 {
				t.Errorf("%s as %s:\n%v", path, filepath.Base(file), said(r))
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Errorf("%s: %d files, %v", folder, n, err)
	}
}
