package subagents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/lazyregexp"
)

// schema is a JSON schema that a report must satisfy.
type schema struct {
	text     string // compact JSON
	resolved *jsonschema.Resolved
}

// readSchema reads the value of --json: a schema or the name of a file in the
// sandbox.
func readSchema(ctx context.Context, c tools.Call, value string) (*schema, error) {
	text := strings.TrimSpace(value)
	if !strings.HasPrefix(text, "{") && text != "true" {
		if !mayBeFileName(value) {
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

// refPattern matches references within a schema.
var refPattern = lazyregexp.New(`"\$(ref|dynamicRef|recursiveRef)"`)

// parseSchema parses a schema. It rejects references, so that validation
// terminates.
func parseSchema(text string) (*schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("the schema has more than %d bytes", maxSchema)
	}
	if ref := refPattern.FindString(text); ref != "" {
		return nil, fmt.Errorf("the schema refers to something by %s; write it out there", ref)
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
