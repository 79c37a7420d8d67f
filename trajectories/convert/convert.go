// Package convert reads what other agents leave of their attempts, as the
// records of a journal: one way in for all that looks at trajectories.
//
// Nothing is guessed silently: what a format does not say stays empty, and what
// has no place in a journal is named in File.Lost. docs/import.md has the table.
//
//	f, err := convert.Open("django__django-11099.traj.json")
//	t, err := trajectories.Gather(f.Records)
package convert

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// File is a trajectory of any format that mini reads.
type File struct {
	// Format is as the file names it ("mini-1", "mini-swe-agent-1.1",
	// "ATIF-v1.7"), or as mini calls it where it does not ("swe-agent",
	// "openhands", "openai-messages").
	Format string
	Header trajectories.Header
	// SHA256 is that of the file's bytes, in hex, and Row the place of this
	// attempt in a file of several, from 1 on, else 0. A journal that was
	// imported has those of what it was made from.
	SHA256 string
	Row    int
	// Lost names what has no place in a journal, a sentence each, as in the import
	// record, where there is one. LossOf takes a sentence apart.
	Lost []string
	// Records are those of a journal, the header first. They can be gone
	// through again. Those of a journal come from its file, record by record;
	// other formats are held in memory.
	Records iter.Seq2[trajectories.Record, error]
	// Children are the records of an attempt's children, and of theirs; their
	// headers say whose they are.
	Children []iter.Seq2[trajectories.Record, error]
}

// Loss is one kind of thing that could not be kept, and how often it was there.
type Loss struct {
	What  string
	Times int
}

func (l Loss) String() string {
	if l.Times == 1 {
		return l.What
	}
	return fmt.Sprintf("%s (%d times)", l.What, l.Times)
}

var counted = lazyregexp.New(`^(.*) \((\d+) times\)$`)

// LossOf reads what Loss.String wrote.
func LossOf(text string) Loss {
	if m := counted.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[2]); err == nil {
			return Loss{What: m[1], Times: n}
		}
	}
	return Loss{What: text, Times: 1}
}

// ErrUnknown is wrapped by the error for a file that is whole, and of no format
// that mini reads.
var ErrUnknown = errors.New("no trajectory of a format that mini reads")

// Open reads the one attempt in a file. Which format it has, its content says.
// Errors name the file, what is wrong, and where.
func Open(path string) (*File, error) {
	var only *File
	for f, err := range All(path) {
		if err != nil {
			return nil, err
		}
		if only != nil {
			return nil, fmt.Errorf("%s has several conversations; mini import makes an attempt of each", path)
		}
		only = f
	}
	return only, nil
}

// All reads every attempt in a file: one, but for lists of conversations. An
// error of one conversation does not end those after it. There is always an
// attempt or an error.
func All(path string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		some := false
		for f, err := range all(path) {
			some = true
			if err != nil {
				f = nil
				if !strings.HasPrefix(err.Error(), path) { // journals say it themselves, with the line
					err = fmt.Errorf("%s: %w", path, err)
				}
			}
			if !yield(f, err) {
				return
			}
		}
		if !some {
			yield(nil, fmt.Errorf("%s: the file is empty", path))
		}
	}
}
