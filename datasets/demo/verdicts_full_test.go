//go:build full

package demo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
)

// TestVerdicts runs the eval script of every row in fresh containers of its image:
// without a patch and with the maintainers' patch (of the first two, TestVerdictsOfTwo
// does), and with the patch that the scripted replies submit. It also counts the mistakes
// that the replies demonstrate.
func TestVerdicts(t *testing.T) {
	engine := dockertest.Engine(t)
	all := instances(t)
	results := make([]replayResult, len(all))
	t.Run("instances", func(t *testing.T) {
		for i, in := range all {
			t.Run(in.ID, func(t *testing.T) {
				t.Parallel()
				needImage(t, in.Image)
				if i >= 2 {
					checkImage(t, engine, in)
				}
				result := replay(t, open(t, engine, in), in)
				if result.replies < 4 || result.replies > 8 || result.cost <= 0 {
					t.Errorf("%d replies for %v dollars", result.replies, result.cost)
				}
				if fixed := outcomes(t, open(t, engine, in), in, result.submission); result.submission == "" || !isFixed(fixed, in) {
					t.Errorf("with the submission: %v\n%s", fixed, result.submission)
				}
				results[i] = result
			})
		}
	})
	var total replayResult
	for _, r := range results {
		if r.replies == 0 {
			return // the instance failed or was skipped
		}
		total.formatErrors += r.formatErrors
		total.failures += r.failures
		total.timeouts += r.timeouts
	}
	want := replayResult{formatErrors: 2, failures: 2, timeouts: 1}
	assert.NoDiff(t, cmp.Diff(want, total, cmp.AllowUnexported(replayResult{})), "mistakes in all instances (-want +got)")
}
