package runner

import (
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Branch is where the attempts of a batch begin, if not at their beginning: at a
// point of others. Their history is repeated in the new journal, and their
// commands are run again in the new sandbox.
type Branch struct {
	// Parents are what is gone on from, by instance.
	Parents map[string]Parent
	// Force goes on also where a command of the history does something else now.
	Force bool
}

// Parent is an attempt up to the record that its Origin names.
type Parent struct {
	Origin  trajectories.Origin
	Records iter.Seq2[trajectories.Record, error]
}

// NewParent finds the point after so many model calls of an attempt. What the
// last of them asked for must have been done, and told: else the history would
// end in the middle of a step.
func NewParent(origin trajectories.Origin, records iter.Seq2[trajectories.Record, error]) (Parent, error) {
	p := Parent{Origin: origin, Records: records}
	t, err := trajectories.Gather(records)
	if err != nil {
		return p, err
	}
	p.Origin.Record, err = endOf(t, origin.Step)
	if err != nil {
		return p, err
	}
	past, err := agent.Recall(p.history())
	if err == nil && past.Record < p.Origin.Record {
		err = errUnfinished(origin.Step)
	}
	if err == nil && past.Delegated {
		err = errDelegated
	}
	return p, err
}

// errDelegated is why an attempt is not branched off from: the numbers of its
// children are those of journals that stay with it.
var errDelegated = errors.New("its commands had children (mini-tool delegate), whose journals would not go with the branch")

// endOf is the last record of a step.
func endOf(t *trajectories.Transcript, step int) (int, error) {
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
		return 0, fmt.Errorf("there is no step %d: it has %d", step, steps)
	case steps == step && t.Outcome != nil && t.Outcome.Class == trajectories.Submitted:
		return 0, fmt.Errorf("step %d handed in the work; go on from an earlier one", step)
	case !answered:
		return 0, errUnfinished(step)
	}
	return last, nil
}

func errUnfinished(step int) error {
	return fmt.Errorf("step %d was not brought to its end; go on from an earlier one", step)
}

// history are the records up to the point.
func (p Parent) history() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range p.Records {
			if r.ID > p.Origin.Record || !yield(r, err) {
				return
			}
		}
	}
}

// fork begins a journal with the history of a parent.
func (b *Batch) fork(path string, h trajectories.Header, p Parent) (opened, error) {
	h.Origin = &p.Origin
	j, err := b.Folder.newJournal(path, func(f *os.File) (*trajectories.Journal, error) {
		return trajectories.ForkIn(f, h, p.Records)
	})
	if err != nil {
		return opened{}, err
	}
	past, err := agent.Recall(trajectories.Read(path))
	if err != nil {
		return opened{}, errors.Join(err, j.Close())
	}
	return opened{j, past}, nil
}
