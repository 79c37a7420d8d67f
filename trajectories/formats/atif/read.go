package atif

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// File is a document that was converted to the records of a journal.
type File struct {
	// Version is the schema_version of the document.
	Version string
	Header  trajectories.Header
	// Losses are sentences, each about information of the document that the records
	// lack, or that only the import record has.
	Losses []string
	// Records are the records of the journal, starting with the header.
	Records []trajectories.Record
	// Children are all children of the attempt, including children of children, if
	// mini wrote the document. Header.Parent of a child identifies its parent.
	Children []*File
}

// Iter returns an iterator over the records.
func (f *File) Iter() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range f.Records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Read converts a document of any version 1.x to records. It ignores unknown fields of
// versions newer than LatestSpec. From a document that mini wrote, it restores the original
// journal. If another program wrote the document, File.Header has no instance ID. Errors
// contain name or its base name; the import record contains the base name.
func Read(name string, data []byte) (*File, error) {
	r := reader{spec: LatestSpec, lenient: true}
	doc := r.document(data)
	if len(r.problems) > 0 {
		return nil, fmt.Errorf("read trajectory %s: %w", name, problemsError(r.problems))
	}
	sum := sha256.Sum256(data)
	imported := trajectories.Import{
		Format: doc.SchemaVersion, File: path.Base(strings.ReplaceAll(name, "\\", "/")), SHA256: hex.EncodeToString(sum[:]),
		Agent: doc.Agent.Name, AgentVersion: doc.Agent.Version, Losses: r.notes,
	}
	extra, ok := doc.miniExtra()
	if !ok {
		conv := converter{doc: doc, imported: imported, newer: r.newer}
		return conv.convert()
	}
	f, err := extra.file(doc, imported)
	if err != nil {
		return nil, fmt.Errorf("read trajectory %s: %w", imported.File, err)
	}
	return f, nil
}

// file restores the journal of a document that mini wrote. It adds imported as the import
// record, unless the original journal has one.
func (root *extraRoot) file(doc *Trajectory, imported trajectories.Import) (*File, error) {
	t, err := trajectories.Fold((&File{Records: root.Records}).Iter())
	if err != nil {
		return nil, err
	}
	if t.Import == nil {
		t.Import = &imported
	}
	t.Header.Format = trajectories.Format
	f := &File{Version: doc.SchemaVersion, Header: t.Header, Losses: t.Import.Losses}
	for r, err := range t.Records() {
		if err != nil {
			return nil, err
		}
		f.Records = append(f.Records, r)
	}
	f.Children, err = doc.children(imported)
	return f, err
}

// problemsError returns an error with the first problem and the number of others.
func problemsError(problems []Problem) error {
	text := problems[0].String()
	if n := len(problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return errors.New(text)
}

// miniExtra returns the extra data of a document that mini wrote, or false for other
// documents.
func (t *Trajectory) miniExtra() (*extraRoot, bool) {
	root := &extraRoot{}
	if json.Unmarshal(t.Extra, root) != nil || root.Journal != trajectories.Format {
		return nil, false
	}
	return root, len(root.Records) > 0 && root.Records[0].Type == trajectories.TypeHeader
}
