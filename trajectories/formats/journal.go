package formats

import (
	"iter"
	"maps"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// openJournal reads the header and the import record of a journal. Iterating over
// File.Records reads the file again.
func openJournal(src source) (*File, error) {
	f := &File{Format: trajectories.Format, SHA256: src.sha256, Records: trajectories.CheckOrder(trajectories.Read(src.path))}
	a, n := trajectories.Attempt{Omit: trajectories.ForTotals}, 0
	for r, err := range f.Records {
		if err != nil {
			return nil, err
		}
		if err := a.Add(r); err != nil {
			return nil, explainJSON(err) // it names the record
		}
		if n++; n == firstRecords {
			break
		}
	}
	f.Header = a.Header
	if i := a.Import; i != nil {
		f.SHA256, f.Row, f.Losses = i.SHA256, i.Row, i.Losses
	}
	paths := trajectories.ChildJournals(src.path)
	for _, n := range slices.Sorted(maps.Keys(paths)) {
		f.Children = append(f.Children, trajectories.CheckOrder(trajectories.Read(paths[n])))
	}
	return f, nil
}

// WithImportRecord returns the records of a journal for use in another run. If the second
// record is not an import record, WithImportRecord inserts one and renumbers the records
// after it, including references to them. path is the path of the journal.
func WithImportRecord(f *File, path string) iter.Seq2[trajectories.Record, error] {
	imported := trajectories.Import{
		Format: f.Format, File: source{path: path}.base(), SHA256: f.SHA256,
		Agent: "mini", AgentVersion: f.Header.MiniVersion,
	}
	return func(yield func(trajectories.Record, error) bool) {
		n, importID := 0, 0 // importID is the ID of the inserted import record; 0 if there is none
		for r, err := range f.Records {
			n++
			if err == nil && n == firstRecords {
				if r.Type != trajectories.TypeImport {
					importID = r.ID
					raw, encErr := trajectories.EncodeJSON(imported)
					if !yield(trajectories.Record{ID: r.ID, Parent: r.Parent, Type: trajectories.TypeImport, Time: r.Time, Data: raw}, encErr) || encErr != nil {
						return
					}
				}
			}
			if err == nil && importID > 0 {
				err = shiftRecord(&r, importID)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// shiftRecord adds one to the ID of a record and to the IDs to which it refers. If the
// record followed the header, its parent becomes the import record.
func shiftRecord(r *trajectories.Record, importID int) error {
	if err := r.Renumber(shiftID); err != nil {
		return explainJSON(err)
	}
	r.ID, r.Parent = r.ID+1, shiftID(r.Parent)
	if r.Parent < firstRecords {
		r.Parent = importID
	}
	return nil
}

// shiftID returns the ID of a record after the insertion of the import record.
func shiftID(id int) int {
	if id < firstRecords {
		return id
	}
	return id + 1
}
