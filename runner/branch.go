package runner

import (
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Branch makes the attempts of a batch continue other attempts after a given step.
// The new journal starts with a copy of the records up to the end of that step
// (the history). The commands of the history are rerun in the new sandbox.
type Branch struct {
	// Parents are the attempts to continue, by instance.
	Parents map[string]BranchParent
	// Force continues even if a rerun command diverges from the history.
	Force bool
}

// BranchParent is an attempt to continue after the record Origin.Record.
type BranchParent struct {
	Origin  trajectories.Origin
	Records iter.Seq2[trajectories.Record, error] // of the whole attempt, not only of the history
}

// NewParent returns a BranchParent whose history ends after step origin.Step,
// and sets its Origin.Record. It fails if the journal lacks the output of a
// command of that step, because a history must not end within a step. It also
// fails if the attempt has no such step, submitted its work in that step, or
// used subagents up to that step.
func NewParent(origin trajectories.Origin, records iter.Seq2[trajectories.Record, error]) (BranchParent, error) {
	p := BranchParent{Origin: origin, Records: records}
	t, err := trajectories.Fold(records)
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
	if err == nil && restored.UsedSubagents() {
		err = errDelegated
	}
	return p, err
}

// errDelegated rejects a parent that used subagents: its records refer to subagent
// journals by number, and a branch does not copy those journals.
var errDelegated = errors.New("its commands started subagents (mini-tool delegate), whose journals a branch does not include")

// lastRecordOf returns the ID of the last record of a step. It returns an error
// if no history can end there.
func lastRecordOf(t *trajectories.Attempt, step int) (int, error) {
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

// history returns the records up to Origin.Record.
func (p BranchParent) history() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range p.Records {
			if r.ID > p.Origin.Record || !yield(r, err) {
				return
			}
		}
	}
}

// branchJournal creates a journal that starts with the history of parent p.
func (b *Batch) branchJournal(path string, h trajectories.Header, p BranchParent) (attemptJournal, error) {
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
	return attemptJournal{Journal: j, resumeState: restored}, nil
}
