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

// File is a document as the records of a journal.
type File struct {
	// Version is the schema_version.
	Version string
	Header  trajectories.Header
	// Lost names what has no place in a journal, or only in the import record; it
	// is that of the import record.
	Lost []string
	// Records begin with the header.
	Records []trajectories.Record
	// Children are those of a document of mini's own, and theirs; their headers say
	// whose they are.
	Children []*File
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

// Read makes records of a document of anybody's, of any version 1.x; newer ones
// than are known are read as far as they are. Its base name stands in the import
// record, the whole in errors. What was written by Write becomes the journal
// that it was; of others, the header has no instance.
func Read(name string, data []byte) (*File, error) {
	r := reader{edition: Newest, lenient: true}
	doc := r.document(data)
	if len(r.problems) > 0 {
		return nil, fmt.Errorf("read trajectory %s: %w", name, problemsError(r.problems))
	}
	sum := sha256.Sum256(data)
	made := trajectories.Import{
		Format: doc.SchemaVersion, File: path.Base(strings.ReplaceAll(name, "\\", "/")), SHA256: hex.EncodeToString(sum[:]),
		Agent: doc.Agent.Name, AgentVersion: doc.Agent.Version, Lost: r.notes,
	}
	if own, ok := doc.own(); ok {
		return own.file(doc, made)
	}
	f := foreign{doc: doc, made: made, newer: r.newer}
	return f.file()
}

// problemsError names the first problem, and says how many there are.
func problemsError(all []Problem) error {
	text := all[0].String()
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return errors.New(text)
}

// own is the extra of a document that mini wrote.
func (t *Trajectory) own() (*ownRoot, bool) {
	root := &ownRoot{}
	if json.Unmarshal(t.Extra, root) != nil || root.Journal != trajectories.Format {
		return nil, false
	}
	return root, true
}
