// Package convert reads what other agents leave of their attempts, as the
// records of a journal: one way in for all that looks at trajectories.
//
// Nothing is guessed silently: what a format does not say stays empty, and what
// has no place in a journal is named in File.Lost.
//
//	f, err := convert.Open("django__django-11099.traj.json")
//	t, err := trajectories.Gather(f.Records)
package convert

import (
	"iter"

	"github.com/minibench/mini/trajectories"
)

// File is a trajectory of any format that mini reads.
type File struct {
	// Format is as the file names it ("mini-1", "mini-swe-agent-1.1",
	// "ATIF-v1.7"), or as mini calls it where it does not ("swe-agent",
	// "openhands", "openai-messages").
	Format string
	Header trajectories.Header
	// Lost names what has no place in a journal, a sentence each; it is that of
	// the import record, where there is one.
	Lost []string
	// Records are those of a journal, the header first. They can be gone
	// through again. Those of a journal come from its file, record by record;
	// other formats are held in memory.
	Records iter.Seq2[trajectories.Record, error]
}

// Open finds out which format a file has, and reads it. Errors name the file,
// what is wrong, and where.
func Open(path string) (*File, error) {
	f := &File{Format: trajectories.Format, Records: trajectories.Read(path)}
	for r, err := range f.Records {
		if err != nil {
			return nil, err
		}
		f.Header, err = trajectories.HeaderOf(r)
		return f, err
	}
	return f, nil
}
