package trajectories

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"syscall"

	"github.com/minibench/mini/internal/rootdir"
)

// CheckOrder yields records as long as they form a valid tree: IDs count from 1 without
// gaps, and only the parent of a resume record may differ from the preceding record. It
// ends with an error for the first record that violates these rules.
func CheckOrder(records iter.Seq2[Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		last := 0
		for r, err := range records {
			if err == nil {
				err = checkNext(&last, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// checkNext checks a record that follows the record with ID last, and sets last to its ID.
// A parent is always an earlier record, so there are no cycles.
func checkNext(last *int, r Record) error {
	switch {
	case r.ID != *last+1:
		return fmt.Errorf("record %d found, want record %d", r.ID, *last+1)
	case r.Type == TypeHeader && r.ID > 1:
		return fmt.Errorf("record %d is a second header: the file contains two journals", r.ID)
	case r.ID == 1 && r.Parent != 0:
		return fmt.Errorf("the first record has parent %d, want 0", r.Parent)
	case r.Parent >= r.ID || r.Parent < 1 && r.ID > 1:
		return fmt.Errorf("record %d has parent %d, which is not an earlier record", r.ID, r.Parent)
	case r.Parent != *last && r.Type != TypeResume:
		return fmt.Errorf("record %d (%s) has parent %d; only a resume record may not follow the record before it", r.ID, r.Type, r.Parent)
	}
	*last = r.ID
	return nil
}

// Reopen opens the journal of an interrupted attempt and appends a resume record that
// continues it after from.Record. Later records stay in the file but are abandoned. Reopen
// removes an incomplete last line, or adds the newline that a
// complete last line lacks. It changes no other line.
func Reopen(path string, from Resume) (*Journal, error) {
	f, err := rootdir.OpenRegular(path, os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("reopen journal: %w", err)
	}
	return ReopenFile(f, from)
}

// ReopenFile is Reopen for a regular file that is open for reading and appending. The
// journal owns the file: Close closes it, and so does ReopenFile on an error.
func ReopenFile(f *os.File, from Resume) (*Journal, error) {
	j, err := reopen(f.Name(), f, from)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reopen journal: %w", err), f.Close())
	}
	return j, nil
}

func reopen(path string, f *os.File, from Resume) (*Journal, error) {
	j, n, terminated := &Journal{file: f, redact: from.Redact}, 0, true
	for r, err := range scan(path, f) {
		if err != nil {
			return nil, err
		}
		n++
		if err := checkNext(&j.last, r.Record); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		j.size, terminated = j.size+r.size, r.terminated
	}
	if from.Record < 1 || from.Record > j.last {
		return nil, fmt.Errorf("%s has %d records; cannot resume from record %d", path, j.last, from.Record)
	}
	if err := f.Truncate(j.size); err != nil {
		return nil, err
	}
	if !terminated {
		if err := j.write([]byte("\n")); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	_, err = j.append(TypeResume, from.Record, body)
	return j, err
}

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
	checked := 0 // ID of the newest record that was checked
	for r, err := range records {
		if err != nil {
			return err
		}
		if r.ID > last {
			break
		}
		if err := checkNext(&checked, r); err != nil {
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
