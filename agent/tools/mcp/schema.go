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

// Bounds of a usage and a help text: maxShown for the keys, maxWords for the
// values of an enumeration.
const (
	maxShown = 24
	maxWords = 8
)

// argumentSchema is the JSON schema of a tool's arguments.
type argumentSchema struct {
	jsonschema.Schema
	keys []string // of the properties, required ones first
	// resolved validates arguments; nil means that only the server validates
	// them.
	resolved *jsonschema.Resolved
}

// newArgumentSchema decodes a server's schema. An invalid schema allows all
// arguments.
func newArgumentSchema(schema any) argumentSchema {
	var s argumentSchema
	data, err := json.Marshal(schema)
	if err != nil || json.Unmarshal(data, &s.Schema) != nil {
		return argumentSchema{}
	}
	// Leave validation with references to the server: such a schema may be
	// recursive, and validation might not terminate.
	if !bytes.Contains(bytes.ToLower(data), []byte(`ref"`)) {
		if r, err := s.Resolve(nil); err == nil {
			s.resolved = r
		}
	}
	maps.DeleteFunc(s.Properties, func(_ string, p *jsonschema.Schema) bool { return p == nil })
	s.Required = slices.DeleteFunc(s.Required, func(key string) bool { return len(key) > 200 })
	s.keys = slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(s.keys, func(a, b string) int { return s.keyOrder(a) - s.keyOrder(b) })
	return s
}

// keyOrder returns the sort key of a property: required properties come first,
// in the order of Required, then the others.
func (s argumentSchema) keyOrder(key string) int {
	if i := slices.Index(s.Required, key); i >= 0 {
		return i
	}
	return len(s.Required)
}

// schemaTypes returns the types that a value may have; empty means any.
func schemaTypes(s *jsonschema.Schema) []string {
	switch {
	case s == nil:
		return nil
	case s.Type != "":
		return []string{s.Type}
	}
	return s.Types
}

func hasType(s *jsonschema.Schema, kind string) bool { return slices.Contains(schemaTypes(s), kind) }

// isFlag reports whether a property can be given as a flag: its value is neither
// a list nor an object, and its name is valid for a flag.
func (s argumentSchema) isFlag(key string) bool {
	p, ok := s.Properties[key]
	return ok && !hasType(p, "array") && !hasType(p, "object") && key != "" && len(key) <= 64 &&
		!unsafeChars.MatchString(key) && key[0] != '-'
}

// jsonFlag is the flag that passes all arguments as one JSON object. If the
// schema has a property of this name, the flag sets that property.
const jsonFlag = "json"

func (s argumentSchema) hasJSONFlag() bool { _, ok := s.Properties[jsonFlag]; return !ok }

// usage returns the forms of a call, one per line.
func (s argumentSchema) usage(name string) string {
	var b strings.Builder
	b.WriteString(name)
	shown, flagsSuffice := 0, true
	for _, key := range s.keys {
		required := slices.Contains(s.Required, key)
		switch {
		case !s.isFlag(key):
			flagsSuffice = flagsSuffice && !required
			continue
		case shown == maxShown:
			b.WriteString(" ...")
		}
		if shown++; shown > maxShown {
			continue
		}
		p := s.Properties[key]
		form := "--" + key + " " + valuePlaceholder(p, key)
		if !required {
			form = "[" + form + "]"
		}
		b.WriteString(" " + form)
	}
	var forms []string
	if flagsSuffice {
		forms = append(forms, b.String())
	}
	if len(s.keys) > 0 || !flagsSuffice {
		if s.hasJSONFlag() {
			forms = append(forms, name+" --"+jsonFlag+" OBJECT")
		}
		forms = append(forms, name+" -    (an object in JSON on standard input)")
	}
	return strings.Join(forms, "\n")
}

// valuePlaceholder returns the placeholder of a value in the usage.
func valuePlaceholder(s *jsonschema.Schema, key string) string {
	var words []string
	for _, v := range s.Enum {
		text, ok := v.(string)
		if !ok || unsafeChars.MatchString(text) || text == "" {
			words = nil
			break
		}
		words = append(words, text)
	}
	switch {
	case len(words) > 0 && len(words) <= maxWords:
		return strings.Join(words, "|")
	case hasType(s, "boolean"):
		return "true|false"
	case hasType(s, "integer"), hasType(s, "number"):
		return "N"
	}
	return strings.ToUpper(key)
}

// help returns a tool's description, followed by a line for each argument, up to
// maxShown.
func (s argumentSchema) help(description string) string {
	var b strings.Builder
	for line := range strings.Lines(description) {
		if text := oneLine(line, 500); text != "" {
			b.WriteString(text + "\n")
		}
	}
	for i, key := range s.keys {
		if i == maxShown {
			fmt.Fprintf(&b, "(and %d more)\n", len(s.keys)-i)
			break
		}
		p := s.Properties[key]
		text := oneLine(p.Description, 200)
		if types := schemaTypes(p); len(types) > 0 {
			text = strings.TrimSpace("(" + strings.Join(types, " or ") + ") " + text)
		}
		fmt.Fprintf(&b, "  %s: %s\n", oneLine(key, 80), oneLine(text, 250))
	}
	return b.String()
}
