package formats

import (
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// readATIF reads an ATIF document. From a document that mini wrote, it restores the
// original journal, including the import record.
func readATIF(src source, data []byte) (*File, error) {
	doc, err := atif.Read("", data)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return nil, fmt.Errorf("invalid ATIF: %w", err)
	}
	f := &File{Format: doc.Version, Header: doc.Header, SHA256: src.sha256, Row: src.row}
	if f.Header.InstanceID == "" {
		f.Header.InstanceID = strings.TrimSuffix(src.name(), ".atif")
		if src.row > 0 {
			f.Header.InstanceID += fmt.Sprintf("-%d", src.row)
		}
	}
	records := doc.Records
	f.Losses = doc.Losses
	for i, r := range records {
		if r.Type == trajectories.TypeHeader {
			records[i].Data, err = trajectories.EncodeJSON(f.Header)
		} else if imported, ok := trajectories.DecodeAs[trajectories.Import](r); ok {
			if imported.Format == doc.Version { // else the restored journal was itself imported
				imported.SHA256, imported.Row, imported.File = src.sha256, src.row, src.base()
				records[i].Data, err = trajectories.EncodeJSON(imported)
			}
			f.SHA256, f.Row, f.Losses = imported.SHA256, imported.Row, imported.Losses
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", r.ID, err)
		}
	}
	f.Records = iterate(records)
	for _, child := range doc.Children {
		f.Children = append(f.Children, iterate(child.Records))
	}
	return f, nil
}
