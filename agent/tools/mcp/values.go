package mcp

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// arguments are what a call says, held against the schema. The error is a
// *tools.UsageError.
func (o object) arguments(c tools.Call) (map[string]any, error) {
	var flags []tools.Flag
	for _, key := range o.keys {
		if o.asFlag(key) {
			flags = append(flags, tools.Flag{Name: key})
		}
	}
	if o.hasWhole() {
		flags = append(flags, tools.Flag{Name: wholeFlag})
	}
	a, err := tools.ParseArgs(o.switches(c.Args), flags...)
	if err != nil {
		return nil, err
	}
	values, whole, err := o.whole(a, c)
	if err != nil {
		return nil, err
	}
	for _, key := range o.keys {
		switch {
		case !o.asFlag(key) || !a.Has(key):
			continue
		case whole:
			return nil, tools.Usagef("--%s stands beside the object that has all arguments: put it in there", key)
		}
		if values[key], err = o.Properties[key].read(key, a.Value(key)); err != nil {
			return nil, err
		}
	}
	return values, o.check(values)
}

// switches lets a flag for a truth value stand alone.
func (o object) switches(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if key, ok := strings.CutPrefix(arg, "--"); ok && o.Properties[key].Type.has("boolean") && len(o.Properties[key].Type) == 1 {
			if i+1 == len(args) || args[i+1] != "true" && args[i+1] != "false" {
				arg += "=true"
			}
		}
		out = append(out, arg)
	}
	return out
}

// whole is the object that a call may have its arguments in.
func (o object) whole(a tools.Args, c tools.Call) (_ map[string]any, given bool, _ error) {
	var text, where string
	switch {
	case len(a.Rest) == 1 && a.Rest[0] == "-":
		text, where = string(c.Input), "the standard input"
	case len(a.Rest) > 0:
		return nil, false, tools.Usagef("%.80q belongs to no key: arguments are written as --key VALUE", a.Rest[0])
	case o.hasWhole() && a.Has(wholeFlag):
		text, where = a.Value(wholeFlag), "--"+wholeFlag
	default:
		return map[string]any{}, false, nil
	}
	v, err := decode(text)
	if err != nil {
		return nil, false, tools.Usagef("%s is no JSON: %v", where, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false, tools.Usagef("%s is no JSON object", where)
	}
	return m, true, nil
}

// decode reads one JSON value; numbers stay as they were written.
func decode(text string) (any, error) {
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

// read makes a value of what stands behind a flag, by the type that it is to have.
func (s schema) read(key, text string) (any, error) {
	if len(s.Type) == 1 && s.Type.has("string") || slices.Contains(s.Enum, any(text)) {
		return text, nil
	}
	for _, kind := range s.Type {
		if v, ok := convert(kind, text); ok {
			return v, nil
		}
	}
	switch {
	case s.Type.has("string"):
		return text, nil
	case len(s.Type) == 0: // of any type
		if v, err := decode(text); err == nil {
			return v, nil
		}
		return text, nil
	}
	return nil, tools.Usagef("--%s is to be %s, not %.80q", key, kindWords(s.Type), text)
}

func convert(kind, text string) (any, bool) {
	switch kind {
	case "integer":
		_, err := strconv.ParseInt(text, 10, 64)
		return json.Number(text), err == nil && json.Valid([]byte(text))
	case "number":
		_, err := strconv.ParseFloat(text, 64)
		return json.Number(text), err == nil && json.Valid([]byte(text))
	case "boolean":
		return text == "true", text == "true" || text == "false"
	case "null":
		return nil, text == "null"
	}
	return nil, false
}

// check finds what is missing, of another type, or none of what there may be.
func (o object) check(values map[string]any) error {
	for _, key := range o.Required {
		if _, ok := values[key]; ok {
			continue
		}
		if o.asFlag(key) {
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
	var plain any // with numbers as the checker knows them
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	if err := o.resolved.Validate(plain); err != nil {
		return tools.Usagef("%s", oneLine(strings.TrimPrefix(err.Error(), "validating root: "), 300))
	}
	return nil
}

func kindWords(k kinds) string {
	words := make([]string, len(k))
	for i, kind := range k {
		words[i] = map[string]string{
			"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "null": "null",
		}[kind]
	}
	return strings.Join(words, " or ")
}
