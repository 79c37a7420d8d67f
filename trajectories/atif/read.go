package atif

import (
	"errors"
	"fmt"
	"iter"

	"github.com/minibench/mini/trajectories"
)

// File is a document as the records of a journal.
type File struct {
	// Version is the schema_version.
	Version string
	Header  trajectories.Header
	// Lost names what has no place in a journal; it is that of the import record.
	Lost []string
	// Records begin with the header.
	Records []trajectories.Record
}

// All goes through the records, as often as one likes.
func (f *File) All() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range f.Records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Read makes records of a document of anybody's, of any version 1.x. The name
// stands in errors and in the import record.
func Read(name string, data []byte) (*File, error) {
	return nil, fmt.Errorf("read trajectory %s: %w", name, errors.ErrUnsupported)
}
