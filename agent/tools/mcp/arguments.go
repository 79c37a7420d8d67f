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

// parseArguments returns the arguments of a call after validation. Errors are
// of type *tools.UsageError.
func (o argumentSchema) parseArguments(c tools.Call) (map[string]any, error) {
	var flags []tools.Flag
	for _, key := range o.keys {
		if o.isFlag(key) {
			flags = append(flags, tools.Flag{Name: key})
		}
	}
	if o.hasJSONFlag() {
		flags = append(flags, tools.Flag{Name: jsonFlag})
	}
	a, err := tools.ParseArgs(o.expandBooleans(c.Args), flags...)
	if err != nil {
		return nil, err
	}
	values, isObject, err := o.parseObject(a, c)
	if err != nil {
		return nil, err
	}
	for _, key := range o.keys {
		switch {
		case !o.isFlag(key) || !a.Has(key):
			continue
		case isObject:
			return nil, tools.Usagef("--%s stands beside the object that has all arguments: put it in there", key)
		}
		if values[key], err = parseValue(o.Properties[key], key, a.Value(key)); err != nil {
			return nil, err
		}
	}
	return values, o.validate(values)
}

// expandBooleans appends "=true" to boolean flags without a value.
func (o argumentSchema) expandBooleans(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if key, ok := strings.CutPrefix(arg, "--"); ok && slices.Equal(types(o.Properties[key]), []string{"boolean"}) {
			if i+1 == len(args) || args[i+1] != "true" && args[i+1] != "false" {
				arg += "=true"
			}
		}
		out = append(out, arg)
	}
	return out
}

// parseObject returns the arguments that a call passes as one object; given
// reports whether it does.
func (o argumentSchema) parseObject(a tools.Args, c tools.Call) (_ map[string]any, given bool, _ error) {
	var text, source string
	switch {
	case len(a.Positional) == 1 && a.Positional[0] == "-":
		text, source = string(c.Input), "the standard input"
	case len(a.Positional) > 0:
		return nil, false, tools.Usagef("%.80q belongs to no key: arguments are written as --key VALUE", a.Positional[0])
	case o.hasJSONFlag() && a.Has(jsonFlag):
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

// parseValue converts the value of a flag: to a string if the schema allows
// one, otherwise from JSON. validate checks the type.
func parseValue(s *jsonschema.Schema, key, text string) (any, error) {
	if hasType(s, "string") || slices.Contains(s.Enum, any(text)) {
		return text, nil
	}
	v, err := decodeJSON(text)
	switch types := types(s); {
	case err == nil:
		return v, nil
	case len(types) > 0:
		return nil, tools.Usagef("--%s is to be %s, not %.80q", key, typeNames.Replace(strings.Join(types, " or ")), text)
	}
	return text, nil
}

// validate reports missing arguments and values that the schema does not allow.
func (o argumentSchema) validate(values map[string]any) error {
	for _, key := range o.Required {
		if _, ok := values[key]; ok {
			continue
		}
		if o.isFlag(key) {
			return tools.Usagef("--%s is missing", key)
		}
		return tools.Usagef("%.80q is missing", key)
	}
	if o.resolved == nil {
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
	if err := o.resolved.Validate(plain); err != nil {
		return tools.Usagef("%s", oneLine(strings.TrimPrefix(err.Error(), "validating root: "), 300))
	}
	return nil
}

// typeNames describes the types of scalars.
var typeNames = strings.NewReplacer("integer", "a whole number", "number", "a number", "boolean", "true or false")
