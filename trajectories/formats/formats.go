// Package formats reads trajectories of other agents as the records of a journal, so
// that all commands can process them. It also reads journals.
//
// Nothing is made up: information that a file lacks stays empty, and information that
// a journal cannot represent is listed in File.Losses. See docs/import.md.
//
//	f, err := formats.Open("django__django-11099.traj.json")
//	t, err := trajectories.BuildTranscript(f.Records)
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
	// Format is as named in the file ("mini-1", "mini-swe-agent-1.1", "ATIF-v1.7"),
	// else mini's name for it ("swe-agent", "openhands", "openai-messages").
	Format string
	Header trajectories.Header
	// SHA256 is the checksum of the file in hex. Row is the position of the attempt
	// in a file of several, from 1; otherwise 0. For an imported journal they are
	// those of the original file.
	SHA256 string
	Row    int
	// Losses are sentences about information that a journal cannot represent, as in
	// the import record. ParseLoss splits them.
	Losses []string
	// Records are the records of a journal, starting with the header. They can be
	// read repeatedly. Those of a journal are read from its file; other formats are
	// kept in memory.
	Records iter.Seq2[trajectories.Record, error]
	// Children are the records of each child of the attempt, including children of
	// children. Their headers name their parents.
	Children []iter.Seq2[trajectories.Record, error]
}

// Loss is a kind of lost information, and how often it occurred.
type Loss struct {
	Description string
	Count       int
}

func (l Loss) String() string {
	if l.Count == 1 {
		return l.Description
	}
	return fmt.Sprintf("%s (%d times)", l.Description, l.Count)
}

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

// ErrUnknownFormat is wrapped by the error for a file that is not a trajectory of a
// supported format.
var ErrUnknownFormat = errors.New("not a trajectory of a supported format")

// Open reads a file with one attempt. The format is detected from the content. Errors
// contain the file name and the position.
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

// Read reads an attempt of any format except a journal. If data has no instance ID,
// the header gets one made from name.
func Read(name string, data []byte) (*File, error) { return readRow(source{path: name}, data) }

// OpenAll reads all attempts in a file. Only lists of conversations have more than
// one. After an error in one conversation it continues with the next. It yields at
// least one attempt or error.
func OpenAll(path string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		found := false
		for f, err := range readAll(path) {
			found = true
			if err != nil {
				f = nil
				if !strings.HasPrefix(err.Error(), path) { // errors of journals contain it, and the line
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
