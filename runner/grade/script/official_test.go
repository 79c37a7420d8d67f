package script_test

import (
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/runner/grade/script"
)

// TestOfficialRows compares the script of every row with the one generated from the tables. The
// number of equal scripts shows how good the generated scripts of rows without one are.
func TestOfficialRows(t *testing.T) {
	for _, set := range []struct {
		file string
		rows int
		same int // minimum number of equal scripts; exceptions in the tables may add more
	}{
		{"verified.jsonl.gz", 500, 498},
		{"lite.jsonl.gz", 300, 300},
		{"lite-dev.parquet", 23, 23},
		{"multilingual.jsonl.gz", 300, 298},
	} {
		t.Run(set.file, func(t *testing.T) {
			rows := officialRows(t, set.file)
			same := 0
			for _, in := range rows {
				own, err := script.For(in)
				if err != nil {
					t.Errorf("%s: %v", in.ID, err)
				}
				if own.Generated {
					t.Errorf("%s: the row's own script was not taken", in.ID)
				}
				if in.Image != datasets.OfficialImage(in.ID) {
					t.Errorf("%s: the image is %s", in.ID, in.Image)
				}
				in.EvalScript = ""
				made, err := script.For(in)
				switch {
				case err != nil:
					t.Errorf("%s: %v", in.ID, err)
				case made.Text == own.Text:
					same++
				default:
					t.Logf("%s differs from the row's own script", in.ID)
				}
			}
			t.Logf("%-24s %3d of %3d generated scripts equal the row's own", set.file, same, len(rows))
			if len(rows) != set.rows || same < set.same {
				t.Errorf("%d rows with %d equal scripts, want %d with at least %d", len(rows), same, set.rows, set.same)
			}
		})
	}
}

// officialRows reads one of the official datasets, if present on this machine.
func officialRows(t *testing.T, file string) []datasets.Instance {
	t.Helper()
	src, err := datasets.Local(corpustest.RealData(t, "swebench/"+file), "")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Instances
}
