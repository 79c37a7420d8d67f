package trajectories

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Branch is Read without what was left behind: where an interrupted attempt went
// on from an earlier record, the end that stood after that one is passed over.
// The file is looked through once before, for where its records follow another
// one than the last.
func Branch(path string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
		if err != nil {
			yield(Record{}, fmt.Errorf("read journal: %w", err))
			return
		}
		defer func() { _ = f.Close() }()
		s, err := look(path, f)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			yield(Record{}, err)
			return
		}
		dead := s.dead()
		// What was appended in the meantime may leave more behind: it is for the
		// next time.
		for r, err := range Scan(path, io.LimitReader(f, s.whole)) {
			for len(dead) > 0 && r.ID > dead[0].last {
				dead = dead[1:]
			}
			if err == nil && len(dead) > 0 && r.ID >= dead[0].first {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Ordered passes on the records of somebody's journal as long as they form a
// tree, as Continue and Branch want it: ids count up, and nothing but a resume
// record follows another one than the last.
func Ordered(records iter.Seq2[Record, error]) iter.Seq2[Record, error] {
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

// tree is how the records of a journal follow each other.
type tree struct {
	last  int // the newest record
	jumps []jump
}

// jump is a record that follows another one than the one before it.
type jump struct{ id, parent int }

// span are records, the first and the last included.
type span struct{ first, last int }

// add takes the next record. Ids count up, and nothing but a resume record
// follows another record than the one before it: so there are no circles, and
// whoever reads on knows at once what was left behind.
func (t *tree) add(r Record) error {
	switch {
	case r.ID != t.last+1:
		return fmt.Errorf("record %d stands where record %d has its place", r.ID, t.last+1)
	case r.Type == TypeHeader && r.ID > 1:
		return fmt.Errorf("record %d is another header: these are two journals in one file", r.ID)
	case r.ID == 1 && r.Parent != 0:
		return fmt.Errorf("the first record follows record %d, and there is none before it", r.Parent)
	case r.Parent >= r.ID || r.Parent < 1 && r.ID > 1:
		return fmt.Errorf("record %d follows record %d, which does not stand before it", r.ID, r.Parent)
	case r.Parent != t.last && r.Type != TypeResume:
		return fmt.Errorf("record %d (%s) follows record %d; only a resume record follows another one than the last", r.ID, r.Type, r.Parent)
	}
	if r.Parent != t.last {
		t.jumps = append(t.jumps, jump{r.ID, r.Parent})
	}
	t.last = r.ID
	return nil
}

// dead are the records that are not on the way from the newest one to the first.
func (t *tree) dead() []span {
	var spans []span
	at := t.last
	for i := len(t.jumps) - 1; i >= 0; i-- {
		if j := t.jumps[i]; j.id <= at {
			spans = append([]span{{j.parent + 1, j.id - 1}}, spans...)
			at = j.parent
		}
	}
	return spans
}

// survey is what is found by looking through the lines of a journal.
type survey struct {
	tree
	whole  int64 // bytes of the lines that are records
	closed bool  // the last of them has its end
}

// look goes through a journal, and checks that its records form a tree.
func look(name string, r io.Reader) (survey, error) {
	s := survey{closed: true}
	n := 0
	for rec, err := range scan(name, r) {
		if err != nil {
			return s, err
		}
		n++
		if err := s.add(rec.Record); err != nil {
			return s, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		s.whole, s.closed = s.whole+rec.size, rec.closed
	}
	return s, nil
}

// Continue opens the journal of an interrupted attempt to go on after the record
// that the Resume names. What stands between is left behind (see Branch), and is
// still there. A torn last line is cut off: the one change that is ever made to a
// journal.
func Continue(path string, from Resume) (*Journal, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a plain file")
	}
	if err != nil {
		return nil, fmt.Errorf("continue journal %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0) //nolint:gosec // G304: going on with the named file is the purpose
	if err != nil {
		return nil, fmt.Errorf("continue journal: %w", err)
	}
	return ContinueIn(f, from)
}

// ContinueIn is Continue in a plain file that is open for reading and appending.
// The journal closes it, and so does an error.
func ContinueIn(f *os.File, from Resume) (*Journal, error) {
	j, err := goOn(f.Name(), f, from)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("continue journal: %w", err), f.Close())
	}
	return j, nil
}

func goOn(path string, f *os.File, from Resume) (*Journal, error) {
	s, err := look(path, f)
	if err != nil {
		return nil, err
	}
	if from.Record < 1 || from.Record > s.last {
		return nil, fmt.Errorf("%s has %d records, and no record %d to go on from", path, s.last, from.Record)
	}
	if err := f.Truncate(s.whole); err != nil {
		return nil, err
	}
	j := &Journal{file: f, size: s.whole, last: s.last, redact: from.Redact}
	if !s.closed {
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
