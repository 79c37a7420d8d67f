package export_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories/export"
)

func TestPick(t *testing.T) {
	tries := []export.Try{
		{Number: 1, Sample: 1, Steps: 1}, // its provider failed
		{Number: 2, Sample: 2, Counts: true, Steps: 9, Cost: 1},
		{Number: 3, Sample: 1, Counts: true, Steps: 5, Cost: 3},
		{Number: 4, Sample: 3, Counts: true, Resolved: true, Steps: 8, Cost: 4},
		{Number: 5, Sample: 4, Counts: true, Resolved: true, Steps: 7, Cost: 9},
	}
	for rule, want := range map[export.Rule][]int{
		export.All: {3, 2, 4, 5}, export.First: {3}, export.Every: {1, 2, 3, 4, 5}, export.Resolved: {4}, export.Shortest: {5}, export.Cheapest: {4},
	} {
		var got []int
		for _, i := range rule.Pick(tries, "a", 0) {
			got = append(got, tries[i].Number)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
	if got := export.Cheapest.Pick(tries[:3], "a", 0); len(got) != 1 || got[0] != 1 {
		t.Errorf("without a resolved one: %v", got)
	}
	if got := export.Resolved.Pick(tries[:3], "a", 0); len(got) != 0 {
		t.Errorf("resolved, and none is: %v", got)
	}
	seen := map[int]bool{}
	for seed := range uint64(50) {
		a, b := export.Random.Pick(tries, "a", seed), export.Random.Pick(tries, "a", seed)
		if !cmp.Equal(a, b) || len(a) != 1 || a[0] == 0 {
			t.Fatalf("seed %d: %v, then %v", seed, a, b)
		}
		seen[a[0]] = true
	}
	if len(seen) != 4 {
		t.Errorf("fifty seeds pick %v", seen)
	}
}
