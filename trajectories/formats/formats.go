// Package formats reads trajectories of other agents as the records of a journal, so
// that all commands can process them. It also reads journals.
//
// Information that is missing in a file stays empty. File.Losses lists information that a
// journal cannot represent. See docs/import.md.
//
//	f, err := formats.Open("django__django-11099.traj.json")
//	t, err := trajectories.Fold(f.Records)
package formats

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// File is a trajectory of any supported format.
type File struct {
	// Format is the name of the format in the file ("mini-1", "mini-swe-agent-1.1",
	// "ATIF-v1.7"), or mini's name for a format that has none in its files
	// ("swe-agent", "openhands", "openai-messages").
	Format string
	Header trajectories.Header
	// SHA256 is the checksum of the file in hex. Row numbers the attempts of a file
	// from 1; it is 0 if the file is one attempt rather than a list. For the journal
	// of an imported attempt, both are those of the original file.
	SHA256 string
	Row    int
	// Losses are sentences about information that a journal cannot represent, as in
	// the import record. ParseLoss splits such a sentence.
	Losses []string
	// Records are the records of the attempt, starting with the header. They can be
	// iterated repeatedly. Each iteration over a journal reads its file; the records
	// of other formats are in memory.
	Records iter.Seq2[trajectories.Record, error]
	// Children are the records of each child of the attempt, including children of
	// children. Header.Parent of a child identifies its parent.
	Children []iter.Seq2[trajectories.Record, error]
}

// Loss is a kind of lost information.
type Loss struct {
	Description string
	Count       int // number of occurrences
}

func (l Loss) String() string {
	if l.Count == 1 {
		return l.Description
	}
	return fmt.Sprintf("%s (%d times)", l.Description, l.Count)
}

// lossPattern matches the result of Loss.String if Count is not 1.
var lossPattern = lazyregexp.New(`^(.*) \((\d+) times\)$`)

// ParseLoss parses the result of Loss.String.
func ParseLoss(text string) Loss {
	if m := lossPattern.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[2]); err == nil {
			return Loss{Description: m[1], Count: n}
		}
	}
	return Loss{Description: text, Count: 1}
}

// ErrUnknownFormat is wrapped by errors about files that are not trajectories of a
// supported format.
var ErrUnknownFormat = errors.New("not a trajectory of a supported format")

// Open reads a file with one attempt. It detects the format from the content. Errors
// contain the path and the position.
func Open(path string) (*File, error) {
	var only *File
	for f, err := range OpenAll(path) {
		if err != nil {
			return nil, err
		}
		if only != nil {
			return nil, fmt.Errorf("%s has several conversations; use mini import to import each", path)
		}
		only = f
	}
	return only, nil
}

// Read reads an attempt of any format except a journal. If data has no instance ID, Read
// makes one from name.
func Read(name string, data []byte) (*File, error) { return readRow(source{path: name}, data) }

// OpenAll reads all attempts in a file, which has several if it is a list of conversations
// or JSON lines with a conversation each. After an error in a conversation, OpenAll
// continues with the next. It yields at least one attempt or error.
func OpenAll(path string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		found := false
		for f, err := range readAll(path) {
			found = true
			if err != nil {
				f = nil
				if !strings.HasPrefix(err.Error(), path) { // errors about journals contain the path and the line
					err = fmt.Errorf("%s: %w", path, err)
				}
			}
			if !yield(f, err) {
				return
			}
		}
		if !found {
			yield(nil, fmt.Errorf("%s: the file is empty", path))
		}
	}
}
