//go:build full

package demo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env/docker/dockertest"
)

// TestVerdicts runs the eval script of every row in fresh containers of its image:
// without a patch, with the maintainers' patch, and with the patch that the scripted
// replies submit. It also counts the mistakes that the replies demonstrate.
func TestVerdicts(t *testing.T) {
	engine := dockertest.Engine(t)
	var all replayResult
	replayed := 0
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			checkImage(t, engine, in)
			result := replay(t, open(t, engine, in), in)
			if result.replies < 4 || result.replies > 8 || result.cost <= 0 {
				t.Errorf("%d replies for %v dollars", result.replies, result.cost)
			}
			if fixed := outcomes(t, open(t, engine, in), in, result.submission); result.submission == "" || !isFixed(fixed, in) {
				t.Errorf("with the submission: %v\n%s", fixed, result.submission)
			}
			replayed++
			all.formatErrors += result.formatErrors
			all.failures += result.failures
			all.timeouts += result.timeouts
		})
	}
	if t.Failed() || replayed < len(instances(t)) {
		return // the counts would only repeat earlier errors
	}
	want := replayResult{formatErrors: 2, failures: 2, timeouts: 1}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(replayResult{})); diff != "" {
		t.Errorf("mistakes in all instances (-want +got):\n%s", diff)
	}
}

func TestRepliesWithATimeoutHere(t *testing.T) {
	for _, in := range instances(t) {
		if in.ID == "minidemo__waypost-42" {
			replayHere(t, in)
			return
		}
	}
	t.Error("the instance is missing")
}
