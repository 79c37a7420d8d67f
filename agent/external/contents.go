package external

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/trajectories"
)

// smallField is the length up to which a field of a request is recorded as it is.
const smallField = 256

// exchangeRecord returns the record of an exchange. Fields that earlier exchanges had too
// are stored once.
func (r *recorder) exchangeRecord(x bridge.Exchange, t *thread) trajectories.Exchange {
	rec := trajectories.Exchange{
		Dialect: x.Dialect, Path: x.Path, Count: x.IsCount, Headers: x.Headers, Thread: trajectories.ThreadSide,
		Request: map[string]json.RawMessage{}, Refs: map[string][]string{}, Contents: map[string]json.RawMessage{},
		Response: x.Reply.Raw, Requested: x.RequestedModel, Served: x.Reply.Model, Edits: x.Edits, Stream: x.Stream,
		Start: x.Start, Duration: trajectories.Seconds(x.Duration), Waited: trajectories.Seconds(x.Reply.Waited),
		Tries: x.Reply.Tries, Usage: x.Reply.Usage, Cost: x.Reply.Cost, Cancelled: x.Cancelled,
	}
	switch {
	case t == &r.main:
		rec.Thread = trajectories.ThreadMain
	case t != nil:
		rec.Thread, rec.Child = trajectories.ThreadChild, t.child.number
	}
	if x.Err != nil {
		rec.Error = x.Err.Error()
	}
	x.Request.Fields(func(name string, value json.RawMessage) bool {
		if len(value) <= smallField {
			rec.Request[name] = value
			return true
		}
		items := []json.RawMessage{value}
		_ = json.Unmarshal(value, &items) // other values are one item
		for _, item := range items {
			sum := sha256.Sum256(item)
			digest := hex.EncodeToString(sum[:16])
			rec.Refs[name] = append(rec.Refs[name], digest)
			if !r.contents[digest] {
				r.contents[digest] = true
				rec.Contents[digest] = item
			}
		}
		return true
	})
	return rec
}
