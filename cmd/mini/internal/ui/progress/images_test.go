package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner"
)

// Each start of a sandbox reports its phases as events about the instance.
func TestObserverPhases(t *testing.T) {
	var got []runner.Event
	o := NewObserver(func(e runner.Event) { got = append(got, e) })
	o.Waiting("a", "waiting for quota")
	o.Starting("a", "img")
	o.Scrubbing("a", "img")
	want := []runner.Event{
		{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a", Text: "waiting for quota"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseStarting, Instance: "a", Text: "img"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseScrubbing, Instance: "a", Text: "img"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
