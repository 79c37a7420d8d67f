package trajectories

import (
	"encoding/json"
	"fmt"
)

// Renumber changes the numbers of other records in the data of a record: now
// returns what becomes of one.
func (r *Record) Renumber(now func(record int) int) error {
	var err error
	switch r.Type {
	case TypeContext:
		err = change(r, func(c *Context) {
			for i := range c.Sent {
				c.Sent[i].From, c.Sent[i].To = now(c.Sent[i].From), now(c.Sent[i].To)
			}
		})
	case TypeCompaction:
		err = change(r, func(c *Compaction) {
			for i := range c.Replaced {
				c.Replaced[i].From, c.Replaced[i].To = now(c.Replaced[i].From), now(c.Replaced[i].To)
			}
		})
	case TypeReplay:
		err = change(r, func(p *Replay) { p.Record = now(p.Record) })
	case TypeResume:
		err = change(r, func(p *Resume) { p.Record = now(p.Record) })
	}
	return err
}

func change[T any](r *Record, f func(*T)) error {
	var data T
	err := json.Unmarshal(r.Data, &data)
	if err == nil {
		f(&data)
		r.Data, err = encode(data)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}
