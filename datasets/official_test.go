package datasets_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/corpustest"
)

// TestOfficialRows loads the official datasets, if the real data is present.
func TestOfficialRows(t *testing.T) {
	for file, n := range map[string]int{"verified": 500, "lite": 300, "multilingual": 300, "multimodal-dev": 102} {
		t.Run(file, func(t *testing.T) {
			set, err := load(t, corpustest.RealData(t, "swebench/"+file+".jsonl.gz"))
			if err != nil {
				t.Fatal(err)
			}
			if len(set.Instances) != n {
				t.Errorf("%d rows, want %d", len(set.Instances), n)
			}
			for _, in := range set.Instances {
				if in.ImageName() != datasets.OfficialImage(in.ID) {
					t.Errorf("%s: the row's image is %s, the rule gives %s", in.ID, in.ImageName(), datasets.OfficialImage(in.ID))
				}
				if len(in.FailToPass)+len(in.PassToPass) == 0 || in.Fields()["repo"] != in.Repo {
					t.Errorf("%s: columns are missing", in.ID)
				}
			}
		})
	}
}

// TestOfficialParquet compares the hub's parquet files with the same rows as JSON lines.
// The JSON has only the split test; of the rows of dev, it checks the columns.
func TestOfficialParquet(t *testing.T) {
	dir := corpustest.RealData(t, "swebench")
	lines := rowsOf(t, filepath.Join(dir, "lite.jsonl.gz"))
	test := rowsOf(t, filepath.Join(dir, "lite-test.parquet"))
	dev := rowsOf(t, filepath.Join(dir, "lite-dev.parquet"))
	if len(test) != 300 || len(lines) != 300 || len(dev) != 23 {
		t.Fatalf("%d rows in test, %d as lines, %d in dev; want 300, 300, 23", len(test), len(lines), len(dev))
	}
	for id, want := range lines {
		if diff := cmp.Diff(want, test[id]); diff != "" {
			t.Errorf("%s (-lines +parquet):\n%.2000s", id, diff)
		}
	}
	columns := slices.Sorted(maps.Keys(test["astropy__astropy-12907"]))
	for id, row := range dev {
		if _, ok := lines[id]; ok {
			t.Errorf("%s is in both splits", id)
		}
		if diff := cmp.Diff(columns, slices.Sorted(maps.Keys(row))); diff != "" {
			t.Errorf("%s: columns (-test +dev):\n%s", id, diff)
		}
	}
	t.Logf("columns: %v", columns)
}

// rowsOf returns all rows as decoded JSON, by id.
func rowsOf(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	src, err := datasets.Local(path, "")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]any{}
	loaded, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range loaded.Instances {
		data, err := in.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if err := json.Unmarshal(data, &row); err != nil {
			t.Fatal(err)
		}
		rows[in.ID] = row
	}
	return rows
}
