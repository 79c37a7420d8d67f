package check_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/formats/check"
)

// TestImportsAreValid checks that imported journals and their .traj.json files are valid.
func TestImportsAreValid(t *testing.T) {
	t.Run("testdata", func(t *testing.T) { checkImports(t, "../testdata") })
	t.Run("real", func(t *testing.T) { checkImports(t, corpustest.RealData(t, "trajectories")) })
}

func checkImports(t *testing.T, folder string) {
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
		f, err := formats.Open(path)
		if err != nil {
			return nil //nolint:nilerr // not a trajectory, or several; tests of package formats check that
		}
		n++
		journal, traj := filepath.Join(t.TempDir(), "journal.jsonl"), filepath.Join(t.TempDir(), "a.traj.json")
		if err := trajectories.WriteJournal(journal, f.Records); err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if err := trajectories.WriteTrajFile(journal, traj); err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		for _, file := range []string{journal, traj} {
			if r := check.File(file, check.Options{}); len(r.Problems) > 0 {
				t.Errorf("%s as %s:\n%v", path, filepath.Base(file), reportLines(r))
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Errorf("%s: %d files, %v", folder, n, err)
	}
}
