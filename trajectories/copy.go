package trajectories

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Write makes a new journal of records that exist already: their ids, parents
// and times stay. It fails when the file is there, and leaves none where it
// fails.
func Write(path string, records iter.Seq2[Record, error]) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // G302, G304: as Create
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	err = WriteRecords(f, records)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write journal: %w", err), os.Remove(path))
	}
	return nil
}

// WriteRecords writes the records of a journal, as Write does.
func WriteRecords(w io.Writer, records iter.Seq2[Record, error]) error {
	first := true
	for r, err := range records {
		if err != nil {
			return err
		}
		if first {
			if _, err := HeaderOf(r); err != nil {
				return err
			}
			first = false
		}
		line, err := r.line()
		if err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if first {
		return errors.New("there are no records")
	}
	return nil
}

// Encode is data as it stands in a record: JSON without the escapes for HTML.
func Encode(data any) ([]byte, error) { return encode(data) }
