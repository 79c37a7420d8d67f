package sessions

import (
	"cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Info describes a session for lists.
type Info struct {
	Metadata
	Model string // "" if the journal cannot be read
	End   string // exit status of the last attempt; "not ended" if there is none
	Cost  model.Cost
	// Unpriced means that the price of some calls is unknown: Cost is a minimum.
	Unpriced bool
}

// Info reads the beginning and the end of the journal.
func (s Stored) Info() Info {
	i := Info{Metadata: s.Metadata, End: "not ended"}
	if header, err := trajectories.ReadHeader(s.Journal); err == nil {
		i.Model = cmp.Or(header.ModelName, header.ModelClass)
	}
	if out, ok, err := trajectories.ReadOutcome(s.Journal); err == nil && ok {
		i.End, i.Cost, i.Unpriced = out.ExitStatus, out.Cost, out.Usage.Unpriced > 0
	}
	return i
}
