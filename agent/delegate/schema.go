package delegate

import (
	"bytes"
	"context"
	"encoding/json"
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

// parseSchema reads a schema. It refers to nothing, so that checking a report ends.
func parseSchema(text string) (*schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("the schema has more than %d bytes", maxSchema)
	}
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("the schema is no JSON: %w", err)
	}
	if err := checkSchema(doc); err != nil {
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

// types are what values can be.
var types = []any{"null", "boolean", "object", "array", "number", "integer", "string"}

// checkSchema refuses references, and types that nothing could satisfy.
func checkSchema(v any) error {
	var parts []any
	switch v := v.(type) {
	case []any:
		parts = v
	case map[string]any:
		for key, one := range v {
			text, isText := one.(string)
			names, isList := one.([]any)
			switch {
			case slices.Contains([]string{"const", "enum", "default", "examples", "dependentRequired"}, key):
				continue
			case isText && slices.Contains([]string{"$ref", "$dynamicRef", "$recursiveRef"}, key):
				return fmt.Errorf("the schema refers to %.100q; write it out there", text)
			case key == "type" && isText:
				names = []any{text}
			case key != "type" || !isList:
				names = nil
			}
			for _, name := range names {
				if _, isText := name.(string); isText && !slices.Contains(types, name) {
					return fmt.Errorf("the schema has the type %.80q; there are %v", name, types)
				}
			}
			parts = append(parts, one)
		}
	}
	for _, one := range parts {
		if err := checkSchema(one); err != nil {
			return err
		}
	}
	return nil
}

// check says why a value does not satisfy the schema.
func (s *schema) check(v any) error {
	if err := s.resolved.Validate(v); err != nil {
		return fmt.Errorf("it does not satisfy the schema: %s", tools.Clip(err.Error(), 1<<10))
	}
	return nil
}
