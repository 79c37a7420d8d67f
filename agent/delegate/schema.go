package delegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/minibench/mini/agent/tools"
)

// schema is what a report in JSON must satisfy.
type schema struct {
	text     string // compact
	resolved *jsonschema.Resolved
}

// readSchema reads what --json says: a schema, or the name of a file in the
// sandbox that holds one.
func readSchema(ctx context.Context, c tools.Call, value string) (*schema, error) {
	text := strings.TrimSpace(value)
	if !strings.HasPrefix(text, "{") && text != "true" {
		if !mayName(value) {
			return nil, tools.Usagef("--json: a schema, or a file that holds one, is needed")
		}
		var found bool
		var err error
		if text, found, err = readFile(ctx, c, value, maxSchema); err != nil {
			return nil, err
		}
		if !found {
			return nil, tools.Usagef("--json: %.200q is neither a schema nor a file that is there", value)
		}
	}
	s, err := parseSchema(text)
	if err != nil {
		return nil, tools.Usagef("--json: %v", err)
	}
	return s, nil
}

// parseSchema checks a schema. It is its own: nothing is fetched that it refers
// to, and it does not refer to itself, so that checking a report ends.
func parseSchema(text string) (*schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("the schema has more than %d bytes", maxSchema)
	}
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("the schema is no JSON: %w", err)
	}
	if err := (&walker{root: doc, left: maxVisits}).walk(doc, nil); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("the schema is none: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema is none: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, err
	}
	return &schema{b.String(), resolved}, nil
}

// maxVisits bounds how large a schema is when all references are followed.
const maxVisits = 10_000

// walker follows the references of a schema.
type walker struct {
	root any
	left int
}

func (w *walker) walk(v any, through []string) error {
	if w.left--; w.left < 0 {
		return errors.New("the schema is too large, with all that it refers to")
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := w.walk(one, through); err != nil {
				return err
			}
		}
	case map[string]any:
		return w.object(v, through)
	}
	return nil
}

func (w *walker) object(v map[string]any, through []string) error {
	for key, one := range v {
		text, isText := one.(string)
		switch {
		case key == "const" || key == "enum" || key == "default" || key == "examples" || key == "dependentRequired":
			continue
		case isText && (key == "$dynamicRef" || key == "$recursiveRef" || key == "$id" && len(through) > 0):
			return fmt.Errorf("the schema has %s, which is not followed here", key)
		case isText && key == "$ref":
			if err := w.follow(text, through); err != nil {
				return err
			}
		case key == "type":
			if err := w.typed(one, through); err != nil {
				return err
			}
		default:
			if err := w.walk(one, through); err != nil {
				return err
			}
		}
	}
	return nil
}

// types are what values can be.
var types = []string{"null", "boolean", "object", "array", "number", "integer", "string"}

// typed checks the names of types; nothing could satisfy another one. A property
// may be called "type", too.
func (w *walker) typed(v any, through []string) error {
	list, isList := v.([]any)
	if text, ok := v.(string); ok {
		list, isList = []any{text}, true
	}
	if !isList {
		return w.walk(v, through)
	}
	for _, one := range list {
		if name, ok := one.(string); ok && !slices.Contains(types, name) {
			return fmt.Errorf("the schema has the type %.80q; there are %s", name, strings.Join(types, ", "))
		}
	}
	return nil
}

func (w *walker) follow(ref string, through []string) error {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return fmt.Errorf("the schema refers to %.100q, and may refer to its own parts only, as #/$defs/NAME", ref)
	}
	for _, r := range through {
		if r == ref {
			return fmt.Errorf("the schema refers to itself, by %.100q", ref)
		}
	}
	at := w.root
	for _, part := range strings.Split(path, "/") {
		object, ok := at.(map[string]any)
		if !ok {
			return fmt.Errorf("the schema refers to %.100q, which is not there", ref)
		}
		if at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return fmt.Errorf("the schema refers to %.100q, which is not there", ref)
		}
	}
	return w.walk(at, append(through[:len(through):len(through)], ref))
}

// check says why a value does not satisfy the schema.
func (s *schema) check(v any) error {
	if err := s.resolved.Validate(v); err != nil {
		return fmt.Errorf("it does not satisfy the schema: %s", tools.Clip(err.Error(), 1<<10))
	}
	return nil
}
