package trajectories

import (
	"errors"
	"fmt"
	"iter"
	"os"
)

// NewFork creates a journal in f that continues after a record of another journal. It
// writes the header h and copies the other records up to h.Origin.Record, so the new
// journal can be read without the original. Records keep their IDs. NewFork closes f
// on an error.
func NewFork(f *os.File, h Header, records iter.Seq2[Record, error]) (*Journal, error) {
	if h.Origin == nil {
		return nil, errors.Join(errors.New("fork journal: header has no origin"), f.Close())
	}
	j, err := NewJournal(f, h)
	if err != nil {
		return nil, err
	}
	if err := j.copyRecords(records, h.Origin.Record); err != nil {
		return nil, errors.Join(fmt.Errorf("fork journal: %w", err), j.Close())
	}
	return j, nil
}

// copyRecords copies the records of another journal, without its header, up to the
// record with ID last.
func (j *Journal) copyRecords(records iter.Seq2[Record, error], last int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := tree{}
	for r, err := range records {
		if err != nil {
			return err
		}
		if r.ID > last {
			break
		}
		if err := t.add(r); err != nil {
			return err
		}
		if r.ID == 1 {
			continue
		}
		line, err := r.line()
		if err == nil {
			err = j.write(line)
		}
		if err != nil {
			return err
		}
		j.last = r.ID
	}
	if j.last != last {
		return fmt.Errorf("no record %d", last)
	}
	return nil
}

// IsInherited reports whether the record with the given ID was copied from the journal
// from which this one was forked. The original attempt paid its cost.
func (h Header) IsInherited(record int) bool { return h.Origin != nil && record <= h.Origin.Record }
