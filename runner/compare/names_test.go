package compare_test

import (
	"math"
	"slices"
	"testing"

	"github.com/minibench/mini/runner/compare"
)

func TestNames(t *testing.T) {
	for _, test := range []struct{ dirs, want []string }{
		{[]string{"runs/a"}, []string{"runs/a"}},
		{[]string{"runs/a", "runs/b/"}, []string{"a", "b"}},
		{[]string{"/data/runs/a", "/data/runs/old/b"}, []string{"a", "old/b"}},
		{[]string{"runs/a", "more/a"}, []string{"runs/a", "more/a"}},
		{[]string{"./a", "a/b"}, []string{"a", "a/b"}},
		{[]string{"../a", "../b"}, []string{"a", "b"}},
	} {
		if got := compare.Names(test.dirs); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q", test.dirs, got)
		}
	}
}

// The number of steps comes from an untrusted file.
func TestAbsurdSteps(t *testing.T) {
	run := compare.Run{Instances: []compare.Instance{{ID: "a", Attempts: []compare.Attempt{{Steps: math.MaxInt, Resolved: true}}}}}
	if got := compare.Summarize(run, compare.Drop).ByLimit; len(got) == 0 || got[len(got)-1].Rate != 1 {
		t.Errorf("rates by limit: %v", got)
	}
}
