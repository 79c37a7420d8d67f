package trajectories

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// ReadCurrentBranch is Read without abandoned records. If an interrupted attempt was
// resumed after a record, the later records of the interrupted session are abandoned.
// ReadCurrentBranch reads the file twice.
func ReadCurrentBranch(path string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
		if err != nil {
			yield(Record{}, fmt.Errorf("read journal: %w", err))
			return
		}
		defer func() { _ = f.Close() }()
		scanned, err := scanTree(path, f)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			yield(Record{}, err)
			return
		}
		abandoned := scanned.abandoned()
		// Ignore records appended since the first pass: they may abandon others.
		for r, err := range Scan(path, io.LimitReader(f, scanned.size)) {
			for len(abandoned) > 0 && r.ID > abandoned[0].last {
				abandoned = abandoned[1:]
			}
			if err == nil && len(abandoned) > 0 && r.ID >= abandoned[0].first {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// CheckOrder yields records as long as they form a valid tree: IDs count from 1 without
// gaps, and only the parent of a resume record may differ from the preceding record. It
// ends with an error for the first record that violates these rules.
func CheckOrder(records iter.Seq2[Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var t tree
		for r, err := range records {
			if err == nil {
				err = t.add(r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// tree checks the order of the records of a journal, and stores where it branches.
type tree struct {
	last  int    // ID of the newest record
	jumps []jump // ascending
}

// jump is a resume record whose parent is not the preceding record.
type jump struct{ id, parent int }

// span is a range of record IDs, inclusive.
type span struct{ first, last int }

// add checks and adds the next record. A parent is always an earlier record, so there
// are no cycles.
func (t *tree) add(r Record) error {
	switch {
	case r.ID != t.last+1:
		return fmt.Errorf("record %d found, want record %d", r.ID, t.last+1)
	case r.Type == TypeHeader && r.ID > 1:
		return fmt.Errorf("record %d is a second header: the file contains two journals", r.ID)
	case r.ID == 1 && r.Parent != 0:
		return fmt.Errorf("the first record has parent %d, want 0", r.Parent)
	case r.Parent >= r.ID || r.Parent < 1 && r.ID > 1:
		return fmt.Errorf("record %d has parent %d, which is not an earlier record", r.ID, r.Parent)
	case r.Parent != t.last && r.Type != TypeResume:
		return fmt.Errorf("record %d (%s) has parent %d; only a resume record may not follow the record before it", r.ID, r.Type, r.Parent)
	}
	if r.Parent != t.last {
		t.jumps = append(t.jumps, jump{r.ID, r.Parent})
	}
	t.last = r.ID
	return nil
}

// abandoned returns the records that are not ancestors of the newest one, in ascending
// order.
func (t *tree) abandoned() []span {
	var spans []span
	ancestor := t.last
	for i := len(t.jumps) - 1; i >= 0; i-- {
		if j := t.jumps[i]; j.id <= ancestor {
			spans = append([]span{{j.parent + 1, j.id - 1}}, spans...)
			ancestor = j.parent
		}
	}
	return spans
}

// scanResult is the result of scanning a journal.
type scanResult struct {
	tree
	size       int64 // size in bytes of all complete records
	terminated bool  // the last complete record ends with a newline
}

// scanTree reads a journal and checks that its records form a tree.
func scanTree(name string, r io.Reader) (scanResult, error) {
	result := scanResult{terminated: true}
	n := 0
	for rec, err := range scan(name, r) {
		if err != nil {
			return result, err
		}
		n++
		if err := result.add(rec.Record); err != nil {
			return result, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		result.size, result.terminated = result.size+rec.size, rec.terminated
	}
	return result, nil
}

// Reopen opens the journal of an interrupted attempt and appends a resume record that
// continues it after from.Record. Later records stay in the file but are abandoned, see
// ReadCurrentBranch. Reopen removes an incomplete last line, or adds the newline that a
// complete last line lacks. It changes no other line.
func Reopen(path string, from Resume) (*Journal, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("reopen journal %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0) //nolint:gosec // G304: opening the named file is the purpose
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
	scanned, err := scanTree(path, f)
	if err != nil {
		return nil, err
	}
	if from.Record < 1 || from.Record > scanned.last {
		return nil, fmt.Errorf("%s has %d records; cannot resume from record %d", path, scanned.last, from.Record)
	}
	if err := f.Truncate(scanned.size); err != nil {
		return nil, err
	}
	j := &Journal{file: f, size: scanned.size, last: scanned.last, redact: from.Redact}
	if !scanned.terminated {
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
