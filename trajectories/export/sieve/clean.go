package sieve

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// Found are secrets of one kind in one record of an attempt. What they are is
// said nowhere.
type Found struct {
	File   string `json:"file"`
	Record int    `json:"record"` // 0 where it is none of the conversation's
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	// Left says that it was left where it is: only of a patch that is no
	// training data, which without it would be another patch.
	Left bool `json:"left,omitempty"`
}

// cleaner takes secrets out of one attempt.
type cleaner struct {
	*scanner
	training bool
	found    map[Found]int
	file     string
	record   int
}

// clean takes secrets out of all texts of an attempt, whichever of them is
// exported. Patches of what trains nobody keep what only looks like a secret.
func (s *scanner) clean(it *export.Item, training bool) []Found {
	c := &cleaner{scanner: s, training: training, found: map[Found]int{}, file: nameOf(it)}
	c.value(reflect.ValueOf(it.Transcript), nil)
	return c.all()
}

// notSearched are fields, by the names of their types, that no agent, model or
// command writes: names, hashes, ids. Whoever puts a key there has it as a name.
var notSearched = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"Header":     {"Format", "MiniVersion", "InstanceID", "ModelClass", "ModelName", "EnvironmentClass", "Origin"},
		"Definition": {"Name"},
		"Import":     {"Format", "File", "SHA256", "Agent", "AgentVersion"},
		"Diff":       {"Base", "Start", "Tree"},
		"Ran":        {"Tree"},
		"Call":       {"ID", "Model", "Tree"},
		"Attempt":    {"Model"},
		"Message":    {"CallID", "Images"},
	}
})

// isPatch says that a field holds a patch.
func isPatch(field string) bool {
	return field == "Submission" || field == "PartialPatch" || field == "Patch"
}

// leaveShapes leaves what only looks like a secret.
func leaveShapes(s secret) bool { return !s.known }

// value cleans every text below v, whatever records have: a field that is added
// to one is looked at too. leave says which secrets may stay.
func (c *cleaner) value(v reflect.Value, leave func(secret) bool) {
	note := func(s secret, left bool) {
		c.found[Found{File: c.file, Record: c.record, Kind: s.kind, Left: left}]++
	}
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			c.value(v.Elem(), leave)
		}
	case v.Kind() == reflect.Struct:
		c.fields(v, leave)
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(redactJSON(c.scanner, v.Bytes(), leave, note))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(redact(c.scanner, v.Bytes(), leave, note))
	case v.Type() == reflect.TypeFor[[]model.Definition](): // may be shared by attempts that are read side by side
		v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		fallthrough
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.value(v.Index(i), leave)
		}
	case v.Type() == reflect.TypeFor[string](): // other kinds of strings are words of a list
		v.SetString(redact(c.scanner, v.String(), leave, note))
	}
}

func (c *cleaner) fields(v reflect.Value, leave func(secret) bool) {
	t := v.Type()
	if r := v.FieldByName("Record"); r.IsValid() && r.CanInt() {
		defer func(old int) { c.record = old }(c.record)
		c.record = int(r.Int())
	}
	if r, ok := v.Interface().(trajectories.Record); ok {
		defer func(old int) { c.record = old }(c.record)
		c.record = r.ID
	}
	skip := notSearched()[t.Name()]
	for i := range t.NumField() {
		field := t.Field(i)
		switch {
		case !field.IsExported() || slices.Contains(skip, field.Name):
		case isPatch(field.Name) && !c.training:
			c.value(v.Field(i), leaveShapes)
		case t == reflect.TypeFor[model.Call]() && field.Name == "Arguments":
			args := reflect.New(reflect.TypeFor[json.RawMessage]()).Elem()
			args.SetBytes([]byte(v.Field(i).String()))
			c.value(args, leave)
			v.Field(i).SetString(string(args.Bytes()))
		default:
			c.value(v.Field(i), leave)
		}
	}
}

// all is what was found, in the order of the records.
func (c *cleaner) all() []Found {
	var all []Found
	for f, n := range c.found {
		f.Count = n
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Record, b.Record), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
