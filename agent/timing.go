package agent

import "github.com/minibench/mini/trajectories"

// timing is a Recorder that adds up the durations of what it records. Those of
// children are not among them: they run within a command.
type timing struct {
	Recorder
	trajectories.Times
}

// Append implements Recorder.
func (t *timing) Append(kind trajectories.Type, data any) (trajectories.Record, error) {
	switch d := data.(type) {
	case trajectories.Call:
		t.Add(kind, d.Duration)
	case trajectories.Execution:
		t.Add(kind, d.Duration)
	case trajectories.Scrub:
		t.Add(kind, d.Duration)
	case trajectories.Check:
		t.Add(kind, d.Duration)
	case trajectories.Diff:
		t.Add(kind, d.Duration)
	}
	return t.Recorder.Append(kind, data)
}

// total adds the times of the sessions before.
func (t *timing) total(past *Past) trajectories.Times {
	sum := t.Times
	if past != nil {
		p := past.Times
		sum = trajectories.Times{
			Start: sum.Start + p.Start, Scrub: sum.Scrub + p.Scrub, Model: sum.Model + p.Model,
			Commands: sum.Commands + p.Commands, Diff: sum.Diff + p.Diff,
		}
	}
	return sum
}
