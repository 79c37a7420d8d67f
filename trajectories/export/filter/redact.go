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

// SecretLocation tells which record has secrets of one kind, without the secrets.
type SecretLocation struct {
	File   string `json:"file"`   // journal of the attempt, or the attempt's instance ID and number
	Record int    `json:"record"` // record ID; 0 if the attempt does not have it, as for the outcome
	Kind   string `json:"kind"`
	Count  int    `json:"count"` // number of secrets
	// NotRemoved is set if the secrets were not removed, because they are in a patch
	// that is not training data, and removing them would change the patch.
	NotRemoved bool `json:"left,omitempty"`
}

// cleaner removes secrets from an attempt.
type cleaner struct {
	*scanner
	training bool
	found    map[SecretLocation]int // location without count -> count
	file     string                 // SecretLocation.File
	record   int                    // SecretLocation.Record of the value that is being searched
}

// clean removes secrets from all texts of an attempt and returns the locations of the
// secrets. Unless the export is for training, clean does not change text in patches that
// matches a key format but is not a known secret.
func (s *scanner) clean(item *export.Item, training bool) []SecretLocation {
	c := &cleaner{scanner: s, training: training, found: map[SecretLocation]int{}, file: displayName(item)}
	c.cleanValue(reflect.ValueOf(item.Attempt), nil)
	return c.locations()
}

// notSearched lists fields that are not searched, by struct type. They contain names,
// hashes, IDs or images instead of text that agents, models or commands wrote.
var notSearched = map[reflect.Type][]string{
	reflect.TypeFor[trajectories.Header](): {
		"Format", "MiniVersion", "InstanceID", "ModelClass", "ModelName", "EnvironmentClass", "Origin",
	},
	reflect.TypeFor[trajectories.Attempt]():   {"Totals", "Limits", "Model", "StartState"}, // Notes has their records
	reflect.TypeFor[model.ToolDefinition]():   {"Name"},
	reflect.TypeFor[trajectories.Import]():    {"Format", "File", "SHA256", "Agent", "AgentVersion"},
	reflect.TypeFor[trajectories.Diff]():      {"Base", "Start", "Tree"},
	reflect.TypeFor[trajectories.Execution](): {"Tree"},
	reflect.TypeFor[trajectories.Call]():      {"Model", "Tree"},
	reflect.TypeFor[model.ToolCall]():         {"ID"},
	reflect.TypeFor[trajectories.Request]():   {"Model"},
	reflect.TypeFor[model.Message]():          {"ToolCallID", "Images"},
}

// isPatch reports whether the field with the given name contains a patch.
func isPatch(field string) bool {
	return field == "Submission" || field == "PartialPatch" || field == "Patch"
}

// keepUnknown reports whether a secret matches a key format but is not a known secret.
func keepUnknown(s secret) bool { return !s.isKnown }

// note counts a secret.
func (c *cleaner) note(s secret, kept bool) {
	c.found[SecretLocation{File: c.file, Record: c.record, Kind: s.kind, NotRemoved: kept}]++
}

// cleanValue removes secrets from all strings in v, except secrets for which keep returns
// true. A nil keep removes all. cleanValue uses reflection, so that it searches fields
// that are added to records later.
func (c *cleaner) cleanValue(v reflect.Value, keep func(secret) bool) {
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			c.cleanValue(v.Elem(), keep)
		}
	case v.Kind() == reflect.Struct:
		c.cleanFields(v, keep)
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		if text := string(v.Bytes()); text != "" { // nil stays nil
			v.SetBytes([]byte(redactJSON(c.scanner, text, keep, c.note)))
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		if text := string(v.Bytes()); text != "" {
			v.SetBytes([]byte(redact(c.scanner, text, keep, c.note)))
		}
	case v.Type() == reflect.TypeFor[[]model.ToolDefinition](): // copy: attempts that are read concurrently may share definitions
		v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		fallthrough
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.cleanValue(v.Index(i), keep)
		}
	case v.Type() == reflect.TypeFor[string](): // other string types are enumerations
		v.SetString(redact(c.scanner, v.String(), keep, c.note))
	}
}

// cleanFields is cleanValue for a struct.
func (c *cleaner) cleanFields(v reflect.Value, keep func(secret) bool) {
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
			c.cleanValue(v.Field(i), keepUnknown)
		case t == reflect.TypeFor[model.ToolCall]() && field.Name == "Arguments":
			v.Field(i).SetString(redactJSON(c.scanner, v.Field(i).String(), keep, c.note))
		default:
			c.cleanValue(v.Field(i), keep)
		}
	}
}

// locations returns the locations of the secrets, sorted by record.
func (c *cleaner) locations() []SecretLocation {
	var locations []SecretLocation
	for location, count := range c.found {
		location.Count = count
		locations = append(locations, location)
	}
	slices.SortFunc(locations, func(a, b SecretLocation) int {
		return cmp.Or(cmp.Compare(a.Record, b.Record), cmp.Compare(a.Kind, b.Kind))
	})
	return locations
}
