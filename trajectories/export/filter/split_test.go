package filter_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

func TestParseSplits(t *testing.T) {
	for text, want := range map[string]string{
		"train=0.95,val=0.05":       "[{train 0.95} {val 0.05}]",
		"a=0.8, b=0.1 ,c=0.1":       "[{a 0.8} {b 0.1} {c 0.1}]",
		"all=1":                     "[{all 1}]",
		"train=0.333333,v=0.666667": "[{train 0.333333} {v 0.666667}]",
	} {
		if got, err := filter.ParseSplits(text); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                      `--split "": "" is not NAME=SHARE; use --split train=0.95,val=0.05`,
		"train":                 `--split "train": "train" is not NAME=SHARE`,
		"train=95%":             `"train=95%" is not NAME=SHARE`,
		"train=0.9,val=0.05":    "--split: the shares add up to 0.95, not 1",
		"train=1,val=0":         "--split: the share of val is 0; shares must be above 0",
		"train=NaN":             "--split: the share of train is NaN",
		"a=0.5,A=0.5":           "--split: A is a duplicate",
		"../up=1":               `--split: "../up" is not a valid file name`,
		"train=2,val=-1":        "--split: the share of train is 2",
		"train=0.5,val=0.5,":    `"" is not NAME=SHARE`,
		"tr ain=0.5,val=0.5":    "is not a valid file name",
		"train=0.5;val=0.5":     "is not NAME=SHARE",
		strings.Repeat("x", 99): "is not NAME=SHARE",
	} {
		if _, err := filter.ParseSplits(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

func splitter(t *testing.T, split string, by filter.SplitBy, seed uint64) func(id string) string {
	t.Helper()
	splits, err := filter.ParseSplits(split)
	if err != nil {
		t.Fatal(err)
	}
	s, err := filter.New(filter.Config{Splits: splits, SplitBy: by, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return func(id string) string { return s.SplitOf(&export.Item{InstanceID: id, Repo: repoOf(id)}) }
}

func TestSplitsAreStable(t *testing.T) {
	splitOf := splitter(t, "train=0.8,val=0.2", "", 42)
	// Fixed values: another hash would move instances between splits of existing
	// models.
	for id, want := range map[string]string{"a__a-1": "train", "a__a-2": "val", "a__a-3": "train", "a__a-6": "train", "b__b-1": "val"} {
		if got := splitOf(id); got != want {
			t.Errorf("%s is in %s, not %s", id, got, want)
		}
	}
	other, moved := splitter(t, "train=0.8,val=0.2", "", 43), 0
	for n := range 1000 {
		if id := fmt.Sprintf("a__a-%d", n); splitOf(id) != other(id) {
			moved++
		}
	}
	if moved < 200 || moved > 450 { // 320 are expected
		t.Errorf("another seed moves %d of 1000", moved)
	}
}

func TestSplitsHaveTheirShare(t *testing.T) {
	splitOf, counts := splitter(t, "train=0.7,val=0.2,test=0.1", "", 1), map[string]float64{}
	const all = 20_000
	for n := range all {
		counts[splitOf(fmt.Sprintf("a__a-%d", n))]++
	}
	for name, share := range map[string]float64{"train": 0.7, "val": 0.2, "test": 0.1} {
		if got := counts[name] / all; math.Abs(got-share) > 0.012 {
			t.Errorf("%s has %.3f, not %.3f", name, got, share)
		}
	}
}

func TestWholeRepositories(t *testing.T) {
	splitOf, seen := splitter(t, "train=0.5,val=0.5", filter.ByRepo, 1), map[string]string{}
	for repo := range 40 {
		for n := range 20 {
			split := splitOf(fmt.Sprintf("o__repo%d-%d", repo, n))
			if was := seen[fmt.Sprint(repo)]; was != "" && was != split {
				t.Errorf("repository %d is in both", repo)
			}
			seen[fmt.Sprint(repo)] = split
		}
	}
	sum := map[string]int{}
	for _, split := range seen {
		sum[split]++
	}
	if sum["train"] < 8 || sum["val"] < 8 {
		t.Errorf("repositories are in %v", sum)
	}
	if splitOf("no-repository-1") == "" {
		t.Error("what knows no repository is in no split")
	}
}

func TestUnevenSplitsAreNoted(t *testing.T) {
	splits, err := filter.ParseSplits("train=0.9,val=0.1")
	if err != nil {
		t.Fatal(err)
	}
	var items []*export.Item
	for n := range 30 {
		items = append(items, item(fmt.Sprintf("o__one-%d", n), 1, 1))
	}
	for name, test := range map[string]struct {
		by   filter.SplitBy
		want string
	}{
		"one repository": {filter.ByRepo, "the split val is empty: repositories are assigned by their hash, and there are only 1"},
		"instances":      {filter.ByInstance, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, s := runFilter(t, filter.Config{Splits: splits, SplitBy: test.by, Seed: 3}, items...)
			notes := strings.Join(s.Report().Notes, "\n")
			if !strings.Contains(notes, test.want) || test.want == "" && notes != "" {
				t.Errorf("notes:\n%s", notes)
			}
		})
	}
}
