package filter

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// SecretLocation is a record with secrets of a kind. It does not contain the secrets.
type SecretLocation struct {
	File   string `json:"file"`
	Record int    `json:"record"` // 0 if it is not part of the conversation
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	// LeftInPlace is set if the secret was not removed: redacting a patch that is not
	// training data would change the patch.
	LeftInPlace bool `json:"left,omitempty"`
}

// cleaner removes secrets from an attempt.
type cleaner struct {
	*scanner
	training bool
	found    map[SecretLocation]int
	file     string
	record   int
}

// clean removes secrets from all texts of an attempt. Unless the export is for
// training, patches keep text that only looks like a secret.
func (s *scanner) clean(it *export.Item, training bool) []SecretLocation {
	c := &cleaner{scanner: s, training: training, found: map[SecretLocation]int{}, file: nameOf(it)}
	c.value(reflect.ValueOf(it.Transcript), nil)
	return c.locations()
}

// notSearched are fields that contain names, hashes or IDs, by struct type. Agents,
// models and commands do not write them.
var notSearched = map[reflect.Type][]string{
	reflect.TypeFor[trajectories.Header](): {
		"Format", "MiniVersion", "InstanceID", "ModelClass", "ModelName", "EnvironmentClass", "Origin",
	},
	reflect.TypeFor[model.ToolDefinition]():           {"Name"},
	reflect.TypeFor[trajectories.Import]():            {"Format", "File", "SHA256", "Agent", "AgentVersion"},
	reflect.TypeFor[trajectories.Diff]():              {"Base", "Start", "Tree"},
	reflect.TypeFor[trajectories.RecordedExecution](): {"Tree"},
	reflect.TypeFor[trajectories.Call]():              {"Model", "Tree"},
	reflect.TypeFor[model.ToolCall]():                 {"ID"},
	reflect.TypeFor[trajectories.Request]():           {"Model"},
	reflect.TypeFor[model.Message]():                  {"ToolCallID", "Images"},
}

// isPatch reports whether a field contains a patch.
func isPatch(field string) bool {
	return field == "Submission" || field == "PartialPatch" || field == "Patch"
}

// keepUnknown keeps text that only looks like a secret.
func keepUnknown(s secret) bool { return !s.isKnown }

// value removes secrets from all strings in v. It uses reflection, so new fields are
// searched too. keep returns whether a secret may stay.
func (c *cleaner) value(v reflect.Value, keep func(secret) bool) {
	note := func(s secret, kept bool) {
		c.found[SecretLocation{File: c.file, Record: c.record, Kind: s.kind, LeftInPlace: kept}]++
	}
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			c.value(v.Elem(), keep)
		}
	case v.Kind() == reflect.Struct:
		c.fields(v, keep)
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(redactJSON(c.scanner, v.Bytes(), keep, note))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(redact(c.scanner, v.Bytes(), keep, note))
	case v.Type() == reflect.TypeFor[[]model.ToolDefinition](): // definitions may be shared by attempts that are read concurrently
		v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		fallthrough
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.value(v.Index(i), keep)
		}
	case v.Type() == reflect.TypeFor[string](): // other string types are enumerations
		v.SetString(redact(c.scanner, v.String(), keep, note))
	}
}

func (c *cleaner) fields(v reflect.Value, keep func(secret) bool) {
	t := v.Type()
	if r := v.FieldByName("Record"); r.IsValid() && r.CanInt() {
		defer func(old int) { c.record = old }(c.record)
		c.record = int(r.Int())
	}
	if r, ok := v.Interface().(trajectories.Record); ok {
		defer func(old int) { c.record = old }(c.record)
		c.record = r.ID
	}
	skip := notSearched[t]
	for i := range t.NumField() {
		field := t.Field(i)
		switch {
		case !field.IsExported() || slices.Contains(skip, field.Name):
		case isPatch(field.Name) && !c.training:
			c.value(v.Field(i), keepUnknown)
		case t == reflect.TypeFor[model.ToolCall]() && field.Name == "Arguments":
			args := reflect.New(reflect.TypeFor[json.RawMessage]()).Elem()
			args.SetBytes([]byte(v.Field(i).String()))
			c.value(args, keep)
			v.Field(i).SetString(string(args.Bytes()))
		default:
			c.value(v.Field(i), keep)
		}
	}
}

// locations returns the locations of the secrets found, sorted by record.
func (c *cleaner) locations() []SecretLocation {
	var locations []SecretLocation
	for f, n := range c.found {
		f.Count = n
		locations = append(locations, f)
	}
	slices.SortFunc(locations, func(a, b SecretLocation) int {
		return cmp.Or(cmp.Compare(a.Record, b.Record), cmp.Compare(a.Kind, b.Kind))
	})
	return locations
}
