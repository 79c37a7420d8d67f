package formats

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// openJournal reads the beginning of a journal. Its records are read from the file as
// needed.
func openJournal(src source) (*File, error) {
	f := &File{Format: trajectories.Format, SHA256: src.sha256, Records: trajectories.CheckOrder(trajectories.Read(src.path))}
	n := 0
	for r, err := range f.Records {
		if err != nil {
			return nil, err
		}
		switch n++; r.Type {
		case trajectories.TypeHeader:
			if f.Header, err = trajectories.DecodeHeader(r); err != nil {
				return nil, err
			}
		case trajectories.TypeImport:
			var from trajectories.Import
			if err := json.Unmarshal(r.Data, &from); err != nil {
				return nil, fmt.Errorf("record %d: %w", r.ID, explain(err))
			}
			f.SHA256, f.Row, f.Losses = from.SHA256, from.Row, from.Losses
		}
		if n == firstRecords {
			break
		}
	}
	paths := trajectories.ChildJournals(src.path)
	for _, n := range slices.Sorted(maps.Keys(paths)) {
		f.Children = append(f.Children, trajectories.CheckOrder(trajectories.Read(paths[n])))
	}
	return f, nil
}

// WithImportRecord returns the records of a journal for use in another run. If there
// is no import record after the header, one is added; the following records and
// references to them are renumbered.
func WithImportRecord(f *File, path string) iter.Seq2[trajectories.Record, error] {
	from := trajectories.Import{
		Format: f.Format, File: source{path: path}.base(), SHA256: f.SHA256,
		Agent: "mini", AgentVersion: f.Header.MiniVersion,
	}
	return func(yield func(trajectories.Record, error) bool) {
		n, at := 0, 0 // at is the ID of the added import record
		for r, err := range f.Records {
			n++
			if err == nil && n == firstRecords {
				if r.Type != trajectories.TypeImport {
					at = r.ID
					raw, encErr := trajectories.EncodeJSON(from)
					if !yield(trajectories.Record{ID: r.ID, Parent: r.Parent, Type: trajectories.TypeImport, Time: r.Time, Data: raw}, encErr) || encErr != nil {
						return
					}
				}
			}
			if err == nil && at > 0 {
				err = shiftRecord(&r, at)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// shiftRecord adds one to the IDs of a record and of the records it refers to. Records that
// followed the header now follow the import record.
func shiftRecord(r *trajectories.Record, importRecord int) error {
	if err := r.Renumber(shiftID); err != nil {
		return explain(err)
	}
	r.ID, r.Parent = r.ID+1, shiftID(r.Parent)
	if r.Parent < firstRecords {
		r.Parent = importRecord
	}
	return nil
}

// shiftID returns the new ID of a record.
func shiftID(id int) int {
	if id < firstRecords {
		return id
	}
	return id + 1
}
