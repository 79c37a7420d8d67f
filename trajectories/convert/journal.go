package convert

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strconv"

	"github.com/minibench/mini/trajectories"
)

// openJournal reads the beginning of a journal; its records are read from the
// file when they are wanted.
func openJournal(src source) (*File, error) {
	f := &File{Format: trajectories.Format, SHA256: src.sha256, Records: trajectories.Ordered(trajectories.Read(src.path))}
	n := 0
	for r, err := range f.Records {
		if err != nil {
			return nil, err
		}
		switch n++; r.Type {
		case trajectories.TypeHeader:
			if f.Header, err = trajectories.HeaderOf(r); err != nil {
				return nil, err
			}
		case trajectories.TypeImport:
			var from trajectories.Import
			if err := json.Unmarshal(r.Data, &from); err != nil {
				return nil, fmt.Errorf("record %d: %w", r.ID, explain(err))
			}
			f.SHA256, f.Row, f.Lost = from.SHA256, from.Row, from.Lost
			for _, text := range from.Lost {
				f.Losses = append(f.Losses, lossOf(text))
			}
		}
		if n == before {
			break
		}
	}
	return f, nil
}

var counted = regexp.MustCompile(`^(.*) \((\d+) times\)$`)

// lossOf reads what Loss.String wrote.
func lossOf(text string) Loss {
	if m := counted.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[2]); err == nil {
			return Loss{What: m[1], Times: n}
		}
	}
	return Loss{What: text, Times: 1}
}

// Adopted are the records of a journal as they go into another run: with an
// import record after the header, where there is none. The records behind it
// move by one, and so do those that name them.
func Adopted(f *File, path string) iter.Seq2[trajectories.Record, error] {
	from := trajectories.Import{
		Format: f.Format, File: source{path: path}.base(), SHA256: f.SHA256,
		Agent: "mini", AgentVersion: f.Header.MiniVersion,
	}
	return func(yield func(trajectories.Record, error) bool) {
		n, at := 0, 0 // at is the id of the import record, where one is put in
		for r, err := range f.Records {
			n++
			if err == nil && n == before {
				if r.Type != trajectories.TypeImport {
					at = r.ID
					raw, encErr := trajectories.Encode(from)
					if !yield(trajectories.Record{ID: r.ID, Parent: r.Parent, Type: trajectories.TypeImport, Time: r.Time, Data: raw}, encErr) || encErr != nil {
						return
					}
				}
			}
			if err == nil && at > 0 {
				err = shift(&r, at)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// shift moves a record by one, with the records that it names. What followed the
// header follows the import record now.
func shift(r *trajectories.Record, importRecord int) error {
	var err error
	switch r.Type {
	case trajectories.TypeContext:
		err = change(r, func(c *trajectories.Context) {
			for i := range c.Sent {
				if p := &c.Sent[i]; p.Message == nil {
					p.From, p.To = moved(p.From), moved(p.To)
				}
			}
		})
	case trajectories.TypeCompaction:
		err = change(r, func(c *trajectories.Compaction) {
			for i := range c.Replaced {
				c.Replaced[i].From, c.Replaced[i].To = moved(c.Replaced[i].From), moved(c.Replaced[i].To)
			}
		})
	case trajectories.TypeResume:
		err = change(r, func(x *trajectories.Resume) { x.Record = moved(x.Record) })
	case trajectories.TypeReplay:
		err = change(r, func(x *trajectories.Replay) { x.Record = moved(x.Record) })
	}
	r.ID, r.Parent = r.ID+1, moved(r.Parent)
	if r.Parent < before {
		r.Parent = importRecord
	}
	return err
}

// moved is where a record stands now; the header stays.
func moved(id int) int {
	if id < before {
		return id
	}
	return id + 1
}

func change[T any](r *trajectories.Record, f func(*T)) error {
	var data T
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return fmt.Errorf("record %d: %w", r.ID, explain(err))
	}
	f(&data)
	raw, err := trajectories.Encode(data)
	r.Data = raw
	return err
}
