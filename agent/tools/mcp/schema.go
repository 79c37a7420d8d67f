package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of what is shown: of the keys, and of the words of an enumeration in a
// usage.
const (
	maxShown = 24
	maxWords = 8
)

// schema is as much of a JSON Schema as flags and usages are made of.
type schema struct {
	Type        kinds             `json:"type"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
}

// UnmarshalJSON implements json.Unmarshaler. A part of another form than is known
// says nothing: true and false are schemas, too.
func (s *schema) UnmarshalJSON(data []byte) error {
	type plain schema
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &parts) != nil {
		return nil //nolint:nilerr // as the comment says
	}
	var p plain
	for key, to := range map[string]any{
		"type": &p.Type, "description": &p.Description, "enum": &p.Enum, "properties": &p.Properties,
		"required": &p.Required,
	} {
		if raw, ok := parts[key]; ok {
			_ = json.Unmarshal(raw, to) // as the comment says
		}
	}
	*s = schema(p)
	return nil
}

// kinds are the types that a value may have; none means any.
type kinds []string

// UnmarshalJSON implements json.Unmarshaler.
func (k *kinds) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(k))
}

func (k kinds) has(name string) bool { return slices.Contains(k, name) }

// object is the schema of a tool's arguments.
type object struct {
	schema
	keys []string // of its properties: the required ones first
	// resolved checks arguments; nil where the server alone does.
	resolved *jsonschema.Resolved
}

// newObject reads the schema that a server gave.
func newObject(given any) object {
	var o object
	if data, err := json.Marshal(given); err == nil {
		_ = json.Unmarshal(data, &o.schema) // one that is none says nothing
		o.resolved = resolve(data)
	}
	o.Required = slices.DeleteFunc(o.Required, func(key string) bool { return len(key) > 200 })
	for _, key := range o.Required {
		if _, ok := o.Properties[key]; ok && !slices.Contains(o.keys, key) {
			o.keys = append(o.keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.Properties)) {
		if !slices.Contains(o.keys, key) {
			o.keys = append(o.keys, key)
		}
	}
	return o
}

// resolve makes a checker of a schema, nil of one that cannot be used. One that
// refers to others, or to itself, is left to the server: checking it may not end.
func resolve(data []byte) *jsonschema.Resolved {
	var s jsonschema.Schema
	if bytes.Contains(bytes.ToLower(data), []byte(`ref"`)) || json.Unmarshal(data, &s) != nil {
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}

// asFlag says that a key can be written as a flag: its value is no list and no
// object.
func (o object) asFlag(key string) bool {
	p, ok := o.Properties[key]
	return ok && !p.Type.has("array") && !p.Type.has("object") && key != "" && len(key) <= 64 &&
		!unsafe.MatchString(key) && key[0] != '-'
}

// wholeFlag gives all arguments as one JSON object; a property of that name goes
// before.
const wholeFlag = "json"

func (o object) hasWhole() bool { _, ok := o.Properties[wholeFlag]; return !ok }

// usage is how a tool is called.
func (o object) usage(name string) string {
	var b strings.Builder
	b.WriteString(name)
	shown, plain := 0, true
	for _, key := range o.keys {
		required := slices.Contains(o.Required, key)
		switch {
		case !o.asFlag(key):
			plain = plain && !required
			continue
		case shown == maxShown:
			b.WriteString(" ...")
		}
		if shown++; shown > maxShown {
			continue
		}
		p := o.Properties[key]
		form := "--" + key + " " + p.word(key)
		if !required {
			form = "[" + form + "]"
		}
		b.WriteString(" " + form)
	}
	var forms []string
	if plain {
		forms = append(forms, b.String())
	}
	if len(o.keys) > 0 || !plain {
		if o.hasWhole() {
			forms = append(forms, name+" --"+wholeFlag+" OBJECT")
		}
		forms = append(forms, name+" -    (an object in JSON on standard input)")
	}
	return strings.Join(forms, "\n")
}

// word stands for a value in a usage.
func (s schema) word(key string) string {
	var words []string
	for _, v := range s.Enum {
		text, ok := v.(string)
		if !ok || unsafe.MatchString(text) || text == "" {
			words = nil
			break
		}
		words = append(words, text)
	}
	switch {
	case len(words) > 0 && len(words) <= maxWords:
		return strings.Join(words, "|")
	case s.Type.has("boolean"):
		return "true|false"
	case s.Type.has("integer"), s.Type.has("number"):
		return "N"
	}
	return strings.ToUpper(key)
}

// help tells of a tool what its usage does not: the whole description, and those of
// the keys.
func (o object) help(description string) string {
	var b strings.Builder
	for line := range strings.Lines(description) {
		if text := oneLine(line, 500); text != "" {
			b.WriteString(text + "\n")
		}
	}
	for i, key := range o.keys {
		if i == maxShown {
			fmt.Fprintf(&b, "(and %d more)\n", len(o.keys)-i)
			break
		}
		p := o.Properties[key]
		text := oneLine(p.Description, 200)
		if len(p.Type) > 0 {
			text = strings.TrimSpace("(" + strings.Join(p.Type, " or ") + ") " + text)
		}
		fmt.Fprintf(&b, "  %s: %s\n", oneLine(key, 80), oneLine(text, 250))
	}
	return b.String()
}
