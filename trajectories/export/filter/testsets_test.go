package filter_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

func TestTestIDs(t *testing.T) {
	for id, want := range map[string]string{
		"django__django-11099":                    "SWE-bench Verified",
		"DJANGO__django-11099":                    "SWE-bench Verified",
		"swebench-verified/django__django-11099":  "SWE-bench Verified",
		"django_1776_django-11099":                "SWE-bench Verified",
		"django__django-10914":                    "SWE-bench Verified", // also in Lite
		"astropy__astropy-14995":                  "SWE-bench Verified",
		"django__django-11019":                    "SWE-bench Lite",
		"django__django-1":                        "SWE-bench", // any issue of the repository
		"apache__druid-13704":                     "SWE-bench Multilingual",
		"apache__druid-1":                         "",
		"chartjs__Chart.js-10301":                 "SWE-bench Multimodal (dev)",
		"PrismJS__prism-1602":                     "SWE-bench Multimodal",
		"GoogleChrome__lighthouse-10505":          "SWE-bench Multimodal",
		"002-cost_2_1__sympy__sympy-21379":        "SWE-bench Verified",
		"Sympy__SymPy-21379.traj":                 "SWE-bench Verified",
		"run-7_django__django-11099_attempt-2":    "SWE-bench Verified",
		"scikit-learn/scikit-learn-25232":         "SWE-bench Verified",
		"scikit-learn_scikit-learn-1":             "SWE-bench",
		"django-django-11099":                     "SWE-bench Verified",
		"django/django#11099":                     "SWE-bench Verified",
		"https://github.com/django/django/pull/1": "SWE-bench",
		"7__my__django-11099":                     "",
		"notdjango__django-11099":                 "",
		"sqlfluff__sqlfluff-2419":                 "", // the dev split
		"pydantic__pydantic-5386":                 "", // SWE-Gym
		"getmoto__moto-5752":                      "",
		"django__money.835c1ab8.combine_file__x1": "", // SWE-smith
		"django__django.abcd1234.func_pm_x__1":    "",
		"demo__calculator-1":                      "",
		"":                                        "", "x": "", "-": "", "/": "", "a__b": "", "django__django-": "", "django__django-11099x": "",
	} {
		if got := filter.TestSetOfID(id); got != want {
			t.Errorf("%q is of %q, not %q", id, got, want)
		}
	}
}

func TestTestDatasets(t *testing.T) {
	for name, want := range map[string]string{
		"live": "SWE-bench-Live", "LIVE@v2": "SWE-bench-Live", "SWE-bench-Live/SWE-bench-Live": "SWE-bench-Live",
		"SWE-bench-Live/MultiLang": "SWE-bench-Live", "data/SWE-bench-Live.jsonl.gz": "SWE-bench-Live", "own.jsonl+live": "SWE-bench-Live",
		"ScaleAI/SWE-bench_Pro": "SWE-bench Pro", "SWE-bench_Pro.parquet": "SWE-bench Pro",
		"ByteDance-Seed/Multi-SWE-bench": "Multi-SWE-bench", "ByteDance-Seed/Multi-SWE-bench_mini": "Multi-SWE-bench",
		"AmazonScience/SWE-PolyBench_500": "SWE-PolyBench", "nebius/SWE-rebench-leaderboard": "SWE-rebench leaderboard",
		"verified": "", "full": "", "smith": "", "SWE-bench/SWE-smith": "", "rebench": "", "nebius/SWE-rebench": "",
		"SWE-Gym/SWE-Gym": "", "ByteDance-Seed/Multi-SWE-RL": "", "demo": "", "live.jsonl": "", "alive": "", "": "", "+": "", "@": "",
	} {
		if got := filter.TestSetOfDataset(name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
}

// officialIDs returns the instance ids of an official file.
func officialIDs(t *testing.T, file string) []string {
	t.Helper()
	src, err := datasets.Local(corpustest.RealData(t, "swebench/"+file), "")
	if err != nil {
		t.Fatal(err)
	}
	set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.NoRows)
	if err != nil {
		t.Fatal(err)
	}
	return set.IDs
}

// TestOfficialIDs compares testsets.txt with the official files.
func TestOfficialIDs(t *testing.T) {
	var list bytes.Buffer
	for _, set := range [][2]string{
		{"SWE-bench Verified", "verified.jsonl.gz"},
		{"SWE-bench Lite", "lite.jsonl.gz"},
		{"SWE-bench Multilingual", "multilingual.jsonl.gz"},
		{"SWE-bench Multimodal (dev)", "multimodal-dev.jsonl.gz"},
	} {
		numbers := map[string]string{}
		for _, id := range slices.SortedFunc(slices.Values(officialIDs(t, set[1])), datasets.CompareNatural) {
			id = strings.ToLower(id)
			dash := strings.LastIndexByte(id, '-')
			numbers[id[:dash]] += " " + id[dash+1:]
			if filter.TestSetOfID(id) == "" {
				t.Errorf("%s of %s is not recognized", id, set[0])
			}
		}
		fmt.Fprintf(&list, "= %s\n", set[0])
		for _, repo := range slices.Sorted(maps.Keys(numbers)) {
			fmt.Fprintf(&list, "%s%s\n", repo, numbers[repo])
		}
	}
	if *update {
		if err := os.WriteFile("testsets.txt", list.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile("testsets.txt"); err != nil || !bytes.Equal(data, list.Bytes()) {
		t.Errorf("testsets.txt differs (%v); run with -update", err)
	}
	for _, id := range officialIDs(t, "lite-dev.parquet") {
		if got := filter.TestSetOfID(id); got != "" {
			t.Errorf("%s is of %q", id, got)
		}
	}
}

func TestTestSetError(t *testing.T) {
	items := []*export.Item{
		item("django__django-11099", 1, 1), item("django__django-11099", 2, 1), item("django__django-11019", 1, 1),
		item("apache__druid-13704", 1, 1), item("own__name-1", 1, 1),
	}
	const want = "nothing was exported: found instances of test sets: 1 attempt on 1 instance of SWE-bench Lite, " +
		"1 attempt on 1 instance of SWE-bench Multilingual, 2 attempts on 1 instance of SWE-bench Verified; " +
		"models trained on test sets cannot be measured by them; exclude them (--repo, or other runs), or use --allow-test-split"
	kept, _, s := runFilter(t, filter.Config{Training: true}, items...)
	if err := s.Err(); err == nil || err.Error() != want || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
	for name, cfg := range map[string]filter.Config{
		"allowed":               {Training: true, AllowTestSets: true},
		"not for training":      {},
		"of another repository": {Training: true, Repos: []string{"own/name"}},
		"of another verdict":    {Training: true, Verdicts: []string{"unresolved"}},
	} {
		_, _, s := runFilter(t, cfg, items...)
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if notes := strings.Join(s.Report().Notes, "\n"); strings.Contains(notes, "2 attempts of the test set SWE-bench Verified") != (name == "allowed") {
			t.Errorf("%s: notes %s", name, notes)
		}
	}
}
