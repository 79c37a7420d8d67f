package runner

import (
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Branch makes the attempts of a batch continue other attempts from a given step.
// The history is copied to the new journal, and its commands are rerun in the new
// sandbox.
type Branch struct {
	// Parents are the attempts to continue, by instance.
	Parents map[string]Parent
	// Force continues even if a rerun command diverges from the history.
	Force bool
}

// Parent is an attempt up to the record named by its Origin.
type Parent struct {
	Origin  trajectories.Origin
	Records iter.Seq2[trajectories.Record, error]
}

// NewParent finds the last record of step origin.Step. All commands of that step
// must have been executed and their output recorded: a history must not end
// within a step.
func NewParent(origin trajectories.Origin, records iter.Seq2[trajectories.Record, error]) (Parent, error) {
	p := Parent{Origin: origin, Records: records}
	t, err := trajectories.BuildTranscript(records)
	if err != nil {
		return p, err
	}
	p.Origin.Record, err = lastRecordOf(t, origin.Step)
	if err != nil {
		return p, err
	}
	restored, err := agent.ReadResumeState(p.history())
	if err == nil && restored.LastRecord < p.Origin.Record {
		err = errUnfinished(origin.Step)
	}
	if err == nil && restored.UsedSubagents {
		err = errDelegated
	}
	return p, err
}

// errDelegated is why an attempt with subagents cannot be branched: its records
// refer to subagent journals by number, and these are not copied.
var errDelegated = errors.New("its commands started subagents (mini-tool delegate), whose journals a branch does not include")

// lastRecordOf returns the last record of a step.
func lastRecordOf(t *trajectories.Transcript, step int) (int, error) {
	steps, last, answered := 0, 0, false
	for _, e := range t.Entries {
		reply := e.Cause == trajectories.CauseReply
		if reply {
			steps++
		}
		if steps == step {
			last, answered = e.Record, !reply
		}
	}
	switch {
	case step < 1 || steps < step:
		return 0, fmt.Errorf("no step %d: the attempt has %d", step, steps)
	case steps == step && t.Outcome != nil && t.Outcome.Class == trajectories.Submitted:
		return 0, fmt.Errorf("step %d submitted the work; branch from an earlier step", step)
	case !answered:
		return 0, errUnfinished(step)
	}
	return last, nil
}

func errUnfinished(step int) error {
	return fmt.Errorf("step %d is incomplete; branch from an earlier step", step)
}

// history returns the records up to the branching point.
func (p Parent) history() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range p.Records {
			if r.ID > p.Origin.Record || !yield(r, err) {
				return
			}
		}
	}
}

// branchJournal creates a journal that starts with the history of a parent.
func (b *Batch) branchJournal(path string, h trajectories.Header, p Parent) (attemptJournal, error) {
	h.Origin = &p.Origin
	j, err := b.Folder.newJournal(path, func(f *os.File) (*trajectories.Journal, error) {
		return trajectories.NewFork(f, h, p.Records)
	})
	if err != nil {
		return attemptJournal{}, err
	}
	restored, err := agent.ReadResumeState(trajectories.Read(path))
	if err != nil {
		return attemptJournal{}, errors.Join(err, j.Close())
	}
	return attemptJournal{j, restored}, nil
}
