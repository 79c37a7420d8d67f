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

// Bounds of the usage: the number of keys, and the number of words of an
// enumeration.
const (
	maxShown = 24
	maxWords = 8
)

// argumentSchema is the JSON schema of a tool's arguments.
type argumentSchema struct {
	jsonschema.Schema
	keys []string // of the properties, required ones first
	// resolved validates arguments; nil leaves the validation to the server.
	resolved *jsonschema.Resolved
}

// newArgumentSchema decodes a server's schema; an invalid one allows
// everything.
func newArgumentSchema(given any) argumentSchema {
	var o argumentSchema
	data, err := json.Marshal(given)
	if err != nil || json.Unmarshal(data, &o.Schema) != nil {
		return argumentSchema{}
	}
	// A schema with references is not validated here: it may be recursive, and
	// validation might not terminate.
	if !bytes.Contains(bytes.ToLower(data), []byte(`ref"`)) {
		if r, err := o.Resolve(nil); err == nil {
			o.resolved = r
		}
	}
	maps.DeleteFunc(o.Properties, func(_ string, p *jsonschema.Schema) bool { return p == nil })
	o.Required = slices.DeleteFunc(o.Required, func(key string) bool { return len(key) > 200 })
	o.keys = slices.Sorted(maps.Keys(o.Properties))
	slices.SortStableFunc(o.keys, func(a, b string) int { return o.keyOrder(a) - o.keyOrder(b) })
	return o
}

// keyOrder is the sort key of a property: required ones in the listed order,
// then the others.
func (o argumentSchema) keyOrder(key string) int {
	if i := slices.Index(o.Required, key); i >= 0 {
		return i
	}
	return len(o.Required)
}

// types returns the types that a value may have; empty means any.
func types(s *jsonschema.Schema) []string {
	switch {
	case s == nil:
		return nil
	case s.Type != "":
		return []string{s.Type}
	}
	return s.Types
}

func hasType(s *jsonschema.Schema, kind string) bool { return slices.Contains(types(s), kind) }

// isFlag reports whether a property can be given as a flag: its value is
// neither a list nor an object.
func (o argumentSchema) isFlag(key string) bool {
	p, ok := o.Properties[key]
	return ok && !hasType(p, "array") && !hasType(p, "object") && key != "" && len(key) <= 64 &&
		!unsafeChars.MatchString(key) && key[0] != '-'
}

// jsonFlag passes all arguments as one JSON object. A property of this name
// takes precedence.
const jsonFlag = "json"

func (o argumentSchema) hasJSONFlag() bool { _, ok := o.Properties[jsonFlag]; return !ok }

// usage returns the forms of a call, one per line.
func (o argumentSchema) usage(name string) string {
	var b strings.Builder
	b.WriteString(name)
	shown, flagsSuffice := 0, true
	for _, key := range o.keys {
		required := slices.Contains(o.Required, key)
		switch {
		case !o.isFlag(key):
			flagsSuffice = flagsSuffice && !required
			continue
		case shown == maxShown:
			b.WriteString(" ...")
		}
		if shown++; shown > maxShown {
			continue
		}
		p := o.Properties[key]
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
	if len(o.keys) > 0 || !flagsSuffice {
		if o.hasJSONFlag() {
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

// help returns the full description of a tool and of its arguments.
func (o argumentSchema) help(description string) string {
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
		if types := types(p); len(types) > 0 {
			text = strings.TrimSpace("(" + strings.Join(types, " or ") + ") " + text)
		}
		fmt.Fprintf(&b, "  %s: %s\n", oneLine(key, 80), oneLine(text, 250))
	}
	return b.String()
}
