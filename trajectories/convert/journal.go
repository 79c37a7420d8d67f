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
	f := &File{Format: trajectories.Format, SHA256: src.sha256, Records: inOrder(trajectories.Read(src.path))}
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

// inOrder checks that records follow records that stand before them: ids only
// grow, and so nothing can follow itself.
func inOrder(records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		last := 0
		for r, err := range records {
			switch {
			case err != nil:
			case r.ID <= last:
				err = fmt.Errorf("record %d stands after record %d", r.ID, last)
			case r.Parent >= r.ID || r.Parent < 0 || r.Parent == 0 && last > 0:
				err = fmt.Errorf("record %d follows record %d, which does not stand before it", r.ID, r.Parent)
			}
			if last = r.ID; !yield(r, err) || err != nil {
				return
			}
		}
	}
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
