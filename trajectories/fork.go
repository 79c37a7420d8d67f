package trajectories

import (
	"errors"
	"fmt"
	"iter"
	"os"
)

// NewFork creates a journal that continues from a point of another one. It writes the
// header h, whose Origin identifies that point, and copies the records of past up to
// it. So the new journal is complete by itself, and records keep their IDs. The file
// is handled as by NewJournal.
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

// copyRecords copies the records of another journal up to record to, without the
// header.
func (j *Journal) copyRecords(records iter.Seq2[Record, error], to int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := tree{}
	for r, err := range records {
		if err != nil {
			return err
		}
		if r.ID > to {
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
	if j.last != to {
		return fmt.Errorf("no record %d", to)
	}
	return nil
}

// IsInherited reports whether a record was copied from the journal that this one was
// forked from. Its cost was paid by the original attempt.
func (h Header) IsInherited(record int) bool { return h.Origin != nil && record <= h.Origin.Record }
