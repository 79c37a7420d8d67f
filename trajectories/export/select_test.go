package export_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories/export"
)

func TestSelect(t *testing.T) {
	attempts := []export.AttemptInfo{
		{Number: 1, Repetition: 1, Steps: 1}, // provider failure
		{Number: 2, Repetition: 2, IsResult: true, Steps: 9, Cost: 1},
		{Number: 3, Repetition: 1, IsResult: true, Steps: 5, Cost: 3},
		{Number: 4, Repetition: 3, IsResult: true, Resolved: true, Steps: 8, Cost: 4},
		{Number: 5, Repetition: 4, IsResult: true, Resolved: true, Steps: 7, Cost: 9},
	}
	for rule, want := range map[export.SelectRule][]int{
		export.SelectAll: {3, 2, 4, 5}, export.SelectFirst: {3}, export.SelectEvery: {1, 2, 3, 4, 5}, export.SelectResolved: {4}, export.SelectShortest: {5}, export.SelectCheapest: {4},
	} {
		var got []int
		for _, i := range rule.Select(attempts, "a", 0) {
			got = append(got, attempts[i].Number)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
	if got := export.SelectCheapest.Select(attempts[:3], "a", 0); len(got) != 1 || got[0] != 1 {
		t.Errorf("without a resolved one: %v", got)
	}
	if got := export.SelectResolved.Select(attempts[:3], "a", 0); len(got) != 0 {
		t.Errorf("resolved, and none is: %v", got)
	}
	seen := map[int]bool{}
	for seed := range uint64(50) {
		a, b := export.SelectRandom.Select(attempts, "a", seed), export.SelectRandom.Select(attempts, "a", seed)
		if !cmp.Equal(a, b) || len(a) != 1 || a[0] == 0 {
			t.Fatalf("seed %d: %v, then %v", seed, a, b)
		}
		seen[a[0]] = true
	}
	if len(seen) != 4 {
		t.Errorf("fifty seeds pick %v", seen)
	}
}
