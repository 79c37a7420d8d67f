package mcp

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/minibench/mini/agent/tools"
)

// parseArguments returns the arguments of a call after validation. An error is
// a *tools.UsageError if the arguments are invalid.
func (s argumentSchema) parseArguments(c tools.Call) (map[string]any, error) {
	var flags []tools.Flag
	for _, key := range s.keys {
		if s.isFlag(key) {
			flags = append(flags, tools.Flag{Name: key})
		}
	}
	if s.hasJSONFlag() {
		flags = append(flags, tools.Flag{Name: jsonFlag})
	}
	a, err := tools.ParseArgs(s.expandBooleans(c.Args), flags...)
	if err != nil {
		return nil, err
	}
	values, isObject, err := s.parseObject(a, c)
	if err != nil {
		return nil, err
	}
	for _, key := range s.keys {
		switch {
		case !s.isFlag(key) || !a.Has(key):
			continue
		case isObject:
			return nil, tools.Usagef("--%s stands beside the object that has all arguments: put it in there", key)
		}
		if values[key], err = parseValue(s.Properties[key], key, a.Value(key)); err != nil {
			return nil, err
		}
	}
	return values, s.validate(values)
}

// expandBooleans appends "=true" to boolean flags without a value.
func (s argumentSchema) expandBooleans(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if key, ok := strings.CutPrefix(arg, "--"); ok && slices.Equal(schemaTypes(s.Properties[key]), []string{"boolean"}) {
			if i+1 == len(args) || args[i+1] != "true" && args[i+1] != "false" {
				arg += "=true"
			}
		}
		out = append(out, arg)
	}
	return out
}

// parseObject returns the arguments of a call that passes them as one object;
// isObject reports whether it does.
func (s argumentSchema) parseObject(a tools.Args, c tools.Call) (_ map[string]any, isObject bool, _ error) {
	var text, source string
	switch {
	case len(a.Positional) == 1 && a.Positional[0] == "-":
		text, source = string(c.Input), "the standard input"
	case len(a.Positional) > 0:
		return nil, false, tools.Usagef("%.80q belongs to no key: arguments are written as --key VALUE", a.Positional[0])
	case s.hasJSONFlag() && a.Has(jsonFlag):
		text, source = a.Value(jsonFlag), "--"+jsonFlag
	default:
		return map[string]any{}, false, nil
	}
	v, err := decodeJSON(text)
	if err != nil {
		return nil, false, tools.Usagef("%s is no JSON: %v", source, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false, tools.Usagef("%s is no JSON object", source)
	}
	return m, true, nil
}

// decodeJSON decodes exactly one JSON value. Numbers keep their notation.
func decodeJSON(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

// parseValue converts the value of a flag. It returns the text itself if the
// schema allows a string or lists the text in enum, else the decoded JSON. Text
// that is not JSON is an error if the schema has a type, else parseValue returns
// the text. The type of the value is checked by validate.
func parseValue(s *jsonschema.Schema, key, text string) (any, error) {
	if hasType(s, "string") || slices.Contains(s.Enum, any(text)) {
		return text, nil
	}
	v, err := decodeJSON(text)
	switch types := schemaTypes(s); {
	case err == nil:
		return v, nil
	case len(types) > 0:
		return nil, tools.Usagef("--%s is to be %s, not %.80q", key, typeNames.Replace(strings.Join(types, " or ")), text)
	}
	return text, nil
}

// validate returns an error for a missing argument or a value that the schema
// does not allow.
func (s argumentSchema) validate(values map[string]any) error {
	for _, key := range s.Required {
		if _, ok := values[key]; ok {
			continue
		}
		if s.isFlag(key) {
			return tools.Usagef("--%s is missing", key)
		}
		return tools.Usagef("%.80q is missing", key)
	}
	if s.resolved == nil {
		return nil
	}
	data, err := json.Marshal(values)
	if err != nil {
		return err
	}
	var plain any // with float64 numbers, as the validator expects
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	if err := s.resolved.Validate(plain); err != nil {
		return tools.Usagef("%s", oneLine(strings.TrimPrefix(err.Error(), "validating root: "), 300))
	}
	return nil
}

// typeNames replaces the names of scalar types by their descriptions.
var typeNames = strings.NewReplacer("integer", "a whole number", "number", "a number", "boolean", "true or false")
