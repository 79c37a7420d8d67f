package trajectories

import (
	"errors"
	"fmt"
	"iter"
	"os"
)

// ForkIn makes a new journal that goes on from a point of another one: after a
// header of its own, which says where it branches off, it has the other's records
// up to there, as they are. So it can be read alone, and every record keeps its
// number. It takes the file as CreateIn does.
func ForkIn(f *os.File, h Header, past iter.Seq2[Record, error]) (*Journal, error) {
	if h.Origin == nil {
		return nil, errors.Join(errors.New("fork journal: the header does not say where from"), f.Close())
	}
	j, err := CreateIn(f, h)
	if err != nil {
		return nil, err
	}
	if err := j.repeat(past, h.Origin.Record); err != nil {
		return nil, errors.Join(fmt.Errorf("fork journal: %w", err), j.Close())
	}
	return j, nil
}

// repeat writes records that stand in another journal, the header left out, up
// to one of them.
func (j *Journal) repeat(past iter.Seq2[Record, error], to int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := tree{}
	for r, err := range past {
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
		return fmt.Errorf("there is no record %d", to)
	}
	return nil
}

// Inherited says of a record that it stands in the journal that this one
// branches off from, too: what it cost was paid there.
func (h Header) Inherited(record int) bool { return h.Origin != nil && record <= h.Origin.Record }
