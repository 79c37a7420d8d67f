package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
)

// readATIF reads the interchange format. One that mini wrote becomes the journal
// that it was, with the import record of that, if it has one.
func readATIF(src source, data []byte) (*File, error) {
	doc, err := atif.Read("", data)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return nil, fmt.Errorf("not as ATIF wants it: %w", err)
	}
	f := &File{Format: doc.Version, Header: doc.Header, SHA256: src.sha256, Row: src.row}
	if f.Header.InstanceID == "" {
		f.Header.InstanceID = strings.TrimSuffix(src.name(), ".atif")
		if src.row > 0 {
			f.Header.InstanceID += fmt.Sprintf("-%d", src.row)
		}
	}
	records := doc.Records
	f.Lost = doc.Lost
	for i, r := range records {
		switch r.Type {
		case trajectories.TypeHeader:
			records[i].Data, err = trajectories.Encode(f.Header)
		case trajectories.TypeImport:
			var from trajectories.Import
			if err = json.Unmarshal(r.Data, &from); err != nil {
				break
			}
			if from.Format == doc.Version { // made of this document, else of what this was made of
				from.SHA256, from.Row, from.File = src.sha256, src.row, src.base()
				records[i].Data, err = trajectories.Encode(from)
			}
			f.SHA256, f.Row, f.Lost = from.SHA256, from.Row, from.Lost
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.ID, err)
		}
	}
	f.Records = sequence(records)
	for _, child := range doc.Children {
		f.Children = append(f.Children, sequence(child.Records))
	}
	return f, nil
}
