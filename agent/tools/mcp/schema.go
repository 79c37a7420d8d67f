package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of a schema: of the keys that are shown, of how deep values are checked,
// and of the words of an enumeration in a usage.
const (
	maxShown  = 24
	maxNested = 8
	maxWords  = 8
)

// schema is as much of a JSON Schema as mini looks at: the server checks the rest.
type schema struct {
	Type        kinds             `json:"type"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Items       *schema           `json:"items"`
	Additional  any               `json:"additionalProperties"`
}

// UnmarshalJSON implements json.Unmarshaler. A part of another form than is known
// says nothing: true and false are schemas, too.
func (s *schema) UnmarshalJSON(data []byte) error {
	type plain schema
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &parts) != nil {
		return nil
	}
	var p plain
	for key, to := range map[string]any{
		"type": &p.Type, "description": &p.Description, "enum": &p.Enum, "properties": &p.Properties,
		"required": &p.Required, "items": &p.Items, "additionalProperties": &p.Additional,
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
}

// newObject reads the schema that a server gave.
func newObject(given any) object {
	var o object
	if data, err := json.Marshal(given); err == nil {
		_ = json.Unmarshal(data, &o.schema) // one that is none says nothing
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

// asFlag says that a key can be written as a flag.
func asFlag(key string) bool {
	return key != "" && len(key) <= 64 && !unsafe.MatchString(key) && key[0] != '-'
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
		case !asFlag(key):
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
		if p.Type.has("array") {
			form += " ..."
		}
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
	case s.Type.has("object"):
		return "OBJECT"
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
