package atif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// What a foreign document says beyond what becomes records is kept in the
// import record, as a document of its own: all of the root, and of each step
// what Write would not make of the records again. So a document that was read
// is written as it was.

// keptDocument has steps of which only some fields are there.
type keptDocument struct {
	Trajectory
	Steps []json.RawMessage `json:"steps,omitempty"`
}

// keptOf is what an attempt keeps of the document it was read from; false where
// it was no document, or has been gone on with since.
func keptOf(t *trajectories.Transcript) (*keptDocument, bool) {
	if t.Import == nil || !strings.HasPrefix(t.Import.Format, "ATIF-") || len(t.Import.Extra) == 0 || t.Header.Origin != nil {
		return nil, false
	}
	kept := &keptDocument{}
	if json.Unmarshal(t.Import.Extra, kept) != nil || kept.SchemaVersion == "" {
		return nil, false
	}
	return kept, true
}

// restored puts what was kept around and into the steps.
func (b *builder) restored(kept *keptDocument) *Trajectory {
	doc := kept.Trajectory
	doc.Steps = b.steps
	for _, k := range kept.Steps {
		var s Step
		if json.Unmarshal(k, &s) != nil || s.ID < 1 || s.ID > int64(len(doc.Steps)) {
			b.lost = append(b.lost, fmt.Sprintf("what was kept of step %d, which is not there", s.ID))
			continue
		}
		var whole Step
		if err := json.Unmarshal(merge(formOf(doc.Steps[s.ID-1]), k), &whole); err != nil && b.err == nil {
			b.err = err
		}
		doc.Steps[s.ID-1] = whole
	}
	return &doc
}

// object and list are JSON values taken apart once.
type (
	object = map[string]json.RawMessage
	list   = []json.RawMessage
)

func apart[T object | list](v json.RawMessage) T {
	var t T
	_ = json.Unmarshal(v, &t) // what is none has no parts
	return t
}

// inParts are the fields of steps that are kept part by part; others are kept
// whole.
var inParts = map[string]bool{"observation": true, "results": true, "tool_calls": true}

// difference counts the fields that Write adds, by their names.
type difference map[string]int

// beyond is what a value says that made, what Write makes of its records, does
// not; nil where that is nothing.
func (d difference) beyond(is, made json.RawMessage) json.RawMessage {
	if a, b := apart[list](is), apart[list](made); a != nil {
		if len(a) != len(b) {
			return is
		}
		kept, some := make(list, len(a)), false
		for i := range a {
			if kept[i] = d.beyond(a[i], b[i]); kept[i] != nil {
				some = true
			} else {
				kept[i] = json.RawMessage("{}")
			}
		}
		if !some {
			return nil
		}
		return formOf(kept)
	}
	a, b := apart[object](is), apart[object](made)
	kept := object{}
	for name, v := range a {
		switch other, there := b[name]; {
		case bytes.Equal(v, other):
		case there && inParts[name]:
			if k := d.beyond(v, other); k != nil {
				kept[name] = k
			}
		default:
			kept[name] = v
		}
	}
	for name := range b {
		if a[name] == nil {
			d[name]++
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return formOf(kept)
}

// merge puts over a value what was kept of it.
func merge(made, kept json.RawMessage) json.RawMessage {
	if a, b := apart[list](made), apart[list](kept); b != nil {
		if len(a) != len(b) {
			return kept
		}
		for i := range a {
			a[i] = merge(a[i], b[i])
		}
		return formOf(a)
	}
	a := apart[object](made)
	for name, v := range apart[object](kept) {
		if other, there := a[name]; there && inParts[name] {
			v = merge(other, v)
		}
		a[name] = v
	}
	return formOf(a)
}

func formOf(v any) json.RawMessage {
	data, err := trajectories.Encode(v)
	if err != nil { // of what was read there is always a form
		return nil
	}
	return data
}
