package convert

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// openJournal reads the beginning of a journal; its records are read from the
// file when they are wanted.
func openJournal(src source) (*File, error) {
	f := &File{Format: trajectories.Format, SHA256: src.sha256, Records: trajectories.Ordered(trajectories.Read(src.path))}
	n := 0
	for r, err := range f.Records {
		if err != nil {
			return nil, err
		}
		switch n++; r.Type {
		case trajectories.TypeHeader:
			if f.Header, err = trajectories.HeaderOf(r); err != nil {
				return nil, err
			}
		case trajectories.TypeImport:
			var from trajectories.Import
			if err := json.Unmarshal(r.Data, &from); err != nil {
				return nil, fmt.Errorf("record %d: %w", r.ID, explain(err))
			}
			f.SHA256, f.Row, f.Lost = from.SHA256, from.Row, from.Lost
		}
		if n == before {
			break
		}
	}
	paths := trajectories.ChildJournals(src.path)
	for _, n := range slices.Sorted(maps.Keys(paths)) {
		f.Children = append(f.Children, trajectories.Ordered(trajectories.Read(paths[n])))
	}
	return f, nil
}

// Adopted are the records of a journal as they go into another run: with an
// import record after the header, where there is none. The records behind it
// move by one, and so do those that name them.
func Adopted(f *File, path string) iter.Seq2[trajectories.Record, error] {
	from := trajectories.Import{
		Format: f.Format, File: source{path: path}.base(), SHA256: f.SHA256,
		Agent: "mini", AgentVersion: f.Header.MiniVersion,
	}
	return func(yield func(trajectories.Record, error) bool) {
		n, at := 0, 0 // at is the id of the import record, where one is put in
		for r, err := range f.Records {
			n++
			if err == nil && n == before {
				if r.Type != trajectories.TypeImport {
					at = r.ID
					raw, encErr := trajectories.Encode(from)
					if !yield(trajectories.Record{ID: r.ID, Parent: r.Parent, Type: trajectories.TypeImport, Time: r.Time, Data: raw}, encErr) || encErr != nil {
						return
					}
				}
			}
			if err == nil && at > 0 {
				err = shift(&r, at)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// shift moves a record by one, with the records that it names. What followed the
// header follows the import record now.
func shift(r *trajectories.Record, importRecord int) error {
	if err := r.Renumber(moved); err != nil {
		return explain(err)
	}
	r.ID, r.Parent = r.ID+1, moved(r.Parent)
	if r.Parent < before {
		r.Parent = importRecord
	}
	return nil
}

// moved is where a record stands now; the header stays.
func moved(id int) int {
	if id < before {
		return id
	}
	return id + 1
}
