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

// File is a document, converted to the records of a journal.
type File struct {
	// Version is the schema_version.
	Version string
	Header  trajectories.Header
	// Losses are sentences about information that only the import record has, or
	// none.
	Losses []string
	// Records start with the header.
	Records []trajectories.Record
	// Children are all children in a document that mini wrote. Their headers name
	// their parents.
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

// Read converts a document of any version 1.x to records. Of newer versions it reads
// the fields it knows. A document that mini wrote becomes its original journal. The
// header of other documents has no instance ID. Errors contain name; the import
// record has its base name.
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
		f := converter{doc: doc, imported: imported, newer: r.newer}
		return f.convert()
	}
	f, err := extra.file(doc, imported)
	if err != nil {
		return nil, fmt.Errorf("read trajectory %s: %w", imported.File, err)
	}
	return f, nil
}

// file restores the journal of a document that mini wrote, including its import
// record.
func (root *extraRoot) file(doc *Trajectory, imported trajectories.Import) (*File, error) {
	t, err := trajectories.BuildTranscript((&File{Records: root.Records}).Iter())
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
	f.Children, err = doc.subagents(imported)
	return f, err
}

// problemsError returns the first problem and the number of the others.
func problemsError(problems []Problem) error {
	text := problems[0].String()
	if n := len(problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return errors.New(text)
}

// miniExtra returns the extra of a document that mini wrote.
func (t *Trajectory) miniExtra() (*extraRoot, bool) {
	root := &extraRoot{}
	if json.Unmarshal(t.Extra, root) != nil || root.Journal != trajectories.Format {
		return nil, false
	}
	return root, len(root.Records) > 0 && root.Records[0].Type == trajectories.TypeHeader
}
