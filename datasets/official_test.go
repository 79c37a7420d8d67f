package datasets_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
)

// TestOfficialRows loads the official datasets, if the real data is present.
func TestOfficialRows(t *testing.T) {
	for file, n := range map[string]int{"verified": 500, "lite": 300, "multilingual": 300, "multimodal-dev": 102} {
		t.Run(file, func(t *testing.T) {
			set, err := load(t, corpustest.RealData(t, "swebench/"+file+".jsonl.gz"))
			require.NoError(t, err)
			assert.Equal(t, n, len(set.Instances), "rows")
			for _, in := range set.Instances {
				assert.Equal(t, datasets.OfficialImage(in.ID), in.ImageName(), "%s: the row's image", in.ID)
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
		assert.NoDiff(t, cmp.Diff(want, test[id]), "%s (-lines +parquet)", id)
	}
	columns := slices.Sorted(maps.Keys(test["astropy__astropy-12907"]))
	for id, row := range dev {
		if _, ok := lines[id]; ok {
			t.Errorf("%s is in both splits", id)
		}
		assert.NoDiff(t, cmp.Diff(columns, slices.Sorted(maps.Keys(row))), "%s: columns (-test +dev)", id)
	}
	t.Logf("columns: %v", columns)
}

// rowsOf returns all rows as decoded JSON, by id.
func rowsOf(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	src, err := datasets.Local(path, "")
	require.NoError(t, err)
	rows := map[string]map[string]any{}
	loaded, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	require.NoError(t, err)
	for _, in := range loaded.Instances {
		data, err := in.JSON()
		require.NoError(t, err)
		var row map[string]any
		require.NoError(t, json.Unmarshal(data, &row))
		rows[in.ID] = row
	}
	return rows
}

func TestRepoOf(t *testing.T) {
	for id, want := range map[string]string{
		"django__django-11099":                  "django/django",
		"Chartjs__Chart.js-10301":               "Chartjs/Chart.js",
		"002-cost_2_1__sympy__sympy-21379":      "sympy/sympy",
		"000-cost_2_3__pylint-dev__pylint-7228": "pylint-dev/pylint",
		"verified/pylint-dev__pylint-7228":      "pylint-dev/pylint",
		"pylint-dev__pylint-7228.1":             "",
		"pylint-7228":                           "",
		"getmoto__moto.694ce1f4.pr_7331":        "",
		"demo__":                                "", "__a-1": "", "a__-1": "", "": "",
	} {
		assert.Equal(t, want, datasets.RepoOf(id), "RepoOf(%q)", id)
	}
}
