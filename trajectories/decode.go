package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
)

// kind is the Go type of the data of a type of records.
type kind struct {
	data   reflect.Type
	decode func(json.RawMessage) (any, error)
}

func kindOf[T any]() kind {
	return kind{reflect.TypeFor[T](), func(raw json.RawMessage) (any, error) {
		var data T
		err := json.Unmarshal(raw, &data)
		return data, err
	}}
}

// kinds has one Go type for each Type.
var kinds = map[Type]kind{
	TypeHeader: kindOf[Header](), TypeImport: kindOf[Import](), TypeResume: kindOf[Resume](), TypeReplay: kindOf[Replay](),
	TypeMessage: kindOf[Message](), TypeContext: kindOf[PromptContext](), TypeSummary: kindOf[Summary](),
	TypeCompaction: kindOf[Compaction](), TypeCall: kindOf[Call](), TypeExecution: kindOf[Execution](),
	TypeTool: kindOf[ToolCall](), TypeChildCall: kindOf[ChildCall](), TypeExchange: kindOf[Exchange](),
	TypeAgentRun: kindOf[AgentRun](), TypeDecision: kindOf[CommandDecision](), TypeLimits: kindOf[Limits](),
	TypeModel: kindOf[ModelChange](), TypeScrub: kindOf[Scrub](), TypeStartState: kindOf[StartState](),
	TypePatchCheck: kindOf[PatchCheck](), TypeDiff: kindOf[Diff](), TypeOutcome: kindOf[Outcome](),
}

// Decode returns the data of a record as the Go type of its Type, by value. The data of a
// type that this version does not know stays json.RawMessage.
func Decode(r Record) (any, error) {
	k, ok := kinds[r.Type]
	if !ok {
		return r.Data, nil
	}
	data, err := k.decode(r.Data)
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", r.ID, err)
	}
	return data, nil
}

// DecodeAs returns the data of a record if it is a T. It returns false if it is not, or if
// it cannot be decoded.
func DecodeAs[T any](r Record) (data T, ok bool) {
	if kinds[r.Type].data != reflect.TypeFor[T]() {
		return data, false
	}
	decoded, err := Decode(r)
	if err == nil {
		data, ok = decoded.(T)
	}
	return data, ok
}

// NotesOf yields the notes of an attempt whose data is a T.
func NotesOf[T any](a *Attempt) iter.Seq2[Note, T] {
	return func(yield func(Note, T) bool) {
		for _, n := range a.Notes {
			if data, ok := DecodeAs[T](n.Record); ok && !yield(n, data) {
				return
			}
		}
	}
}

// renumberer is record data that refers to other records by ID.
type renumberer interface {
	// renumber returns the data with new IDs.
	renumber(newID func(record int) int) any
}

func (c PromptContext) renumber(newID func(int) int) any {
	for i := range c.Sent {
		c.Sent[i].From, c.Sent[i].To = newID(c.Sent[i].From), newID(c.Sent[i].To)
	}
	return c
}

func (c Compaction) renumber(newID func(int) int) any {
	for i := range c.Replaced {
		c.Replaced[i].From, c.Replaced[i].To = newID(c.Replaced[i].From), newID(c.Replaced[i].To)
	}
	return c
}

func (p Replay) renumber(newID func(int) int) any {
	p.Record = newID(p.Record)
	return p
}

func (p Resume) renumber(newID func(int) int) any {
	p.Record = newID(p.Record)
	return p
}

// Renumber replaces the record IDs in r.Data, except Header.Origin.Record. newID maps old
// record IDs to new ones. Renumber does not change r.ID and r.Parent.
func (r *Record) Renumber(newID func(record int) int) error {
	if k, ok := kinds[r.Type]; !ok || !k.data.Implements(reflect.TypeFor[renumberer]()) {
		return nil
	}
	data, err := Decode(*r)
	if err != nil {
		return err
	}
	if r.Data, err = encode(data.(renumberer).renumber(newID)); err != nil { //nolint:errcheck,forcetypeassert // its type implements it
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}

// JSONKind returns the kind of a JSON value with an article, such as "a list", for
// error messages. It returns "nothing" for empty data.
func JSONKind(v json.RawMessage) string {
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}
