package trajectories

import (
	"encoding/json"
	"fmt"
)

// Renumber replaces the record IDs in r.Data, except Header.Origin.Record. newID maps old
// record IDs to new ones. Renumber does not change r.ID and r.Parent.
func (r *Record) Renumber(newID func(record int) int) error {
	var err error
	switch r.Type {
	case TypeContext:
		err = updateData(r, func(c *PromptContext) {
			for i := range c.Sent {
				c.Sent[i].From, c.Sent[i].To = newID(c.Sent[i].From), newID(c.Sent[i].To)
			}
		})
	case TypeCompaction:
		err = updateData(r, func(c *Compaction) {
			for i := range c.Replaced {
				c.Replaced[i].From, c.Replaced[i].To = newID(c.Replaced[i].From), newID(c.Replaced[i].To)
			}
		})
	case TypeReplay:
		err = updateData(r, func(p *Replay) { p.Record = newID(p.Record) })
	case TypeResume:
		err = updateData(r, func(p *Resume) { p.Record = newID(p.Record) })
	}
	return err
}

func updateData[T any](r *Record, update func(*T)) error {
	var data T
	err := json.Unmarshal(r.Data, &data)
	if err == nil {
		update(&data)
		r.Data, err = encode(data)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}
