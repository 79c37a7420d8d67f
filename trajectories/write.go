package trajectories

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// WriteJournal creates a journal with existing records, whose IDs, parents and times do
// not change. It fails if the file exists. On a later error, it removes the file.
func WriteJournal(path string, records iter.Seq2[Record, error]) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // G302, G304: as in Create
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

// WriteRecords is WriteJournal for an io.Writer.
func WriteRecords(w io.Writer, records iter.Seq2[Record, error]) error {
	first := true
	for r, err := range records {
		if err != nil {
			return err
		}
		if first {
			if _, err := DecodeHeader(r); err != nil {
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
		return errors.New("no records")
	}
	return nil
}

// EncodeJSON is json.Marshal without HTML escapes, as in records.
func EncodeJSON(data any) ([]byte, error) { return encode(data) }
