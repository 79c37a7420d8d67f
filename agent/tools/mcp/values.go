package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
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
		if asFlag(key) {
			flags = append(flags, tools.Flag{Name: key, Repeats: o.Properties[key].Type.has("array")})
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
		given := a.Values(key)
		switch {
		case len(given) == 0:
			continue
		case whole:
			return nil, tools.Usagef("--%s stands beside the object that has all arguments: put it in there", key)
		}
		if values[key], err = o.Properties[key].read(key, given); err != nil {
			return nil, err
		}
	}
	return values, o.check("", values, 0)
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
	text, where := "", ""
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
func (s schema) read(key string, given []string) (any, error) {
	if s.Type.has("array") {
		if len(given) == 1 && strings.HasPrefix(strings.TrimSpace(given[0]), "[") {
			if v, err := decode(given[0]); err == nil {
				return v, nil
			}
		}
		list := []any{}
		item := schema{}
		if s.Items != nil {
			item = *s.Items
		}
		for _, text := range given {
			v, err := item.read(key, []string{text})
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	text := given[0]
	if s.Type.has("string") && len(s.Type) == 1 || s.allows(text) {
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

// allows says that a text is one of an enumeration.
func (s schema) allows(text string) bool { return slices.Contains(s.Enum, any(text)) }

func convert(kind, text string) (any, bool) {
	switch kind {
	case "integer":
		_, err := strconv.ParseInt(text, 10, 64)
		return json.Number(text), err == nil && json.Valid([]byte(text))
	case "number":
		return json.Number(text), json.Valid([]byte(text)) && isNumber(text)
	case "boolean":
		return text == "true", text == "true" || text == "false"
	case "null":
		return nil, text == "null"
	case "object":
		v, err := decode(text)
		_, ok := v.(map[string]any)
		return v, err == nil && ok
	}
	return nil, false
}

func isNumber(text string) bool { _, err := strconv.ParseFloat(text, 64); return err == nil }

// check finds what is missing, of another type, or none of what there may be.
func (s schema) check(path string, v any, depth int) error {
	if depth > maxNested {
		return nil
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(kind string) bool { return isKind(kind, v) }) {
		return tools.Usagef("%s is to be %s, not %s", orAll(path), kindWords(s.Type), short(v))
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(one any) bool { return same(one, v) }) {
		return tools.Usagef("%s is to be one of %s, not %s", orAll(path), listed(s.Enum), short(v))
	}
	switch v := v.(type) {
	case map[string]any:
		return s.checkObject(path, v, depth)
	case []any:
		if s.Items == nil {
			return nil
		}
		for i, one := range v {
			if err := s.Items.check(fmt.Sprintf("%s[%d]", path, i), one, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s schema) checkObject(path string, v map[string]any, depth int) error {
	for _, key := range s.Required {
		if _, ok := v[key]; !ok {
			return tools.Usagef("%s is missing", within(path, key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		p, ok := s.Properties[key]
		if !ok && s.Additional == false {
			return tools.Usagef("%s is not known", within(path, key))
		}
		if err := p.check(within(path, key), v[key], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// within names a place in the arguments, as a flag where it is one.
func within(path, key string) string {
	if len(key) > 80 {
		key = key[:80] + "..."
	}
	switch {
	case path == "" && asFlag(key):
		return "--" + key
	case path == "":
		return strconv.Quote(key)
	}
	return path + "." + key
}

func orAll(path string) string {
	if path == "" {
		return "the whole"
	}
	return path
}

func isKind(kind string, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	case json.Number:
		if kind == "integer" {
			f, err := v.Float64()
			return err == nil && f == float64(int64(f))
		}
		return kind == "number"
	}
	return true
}

// same compares a value of a schema, whose numbers are floats, with one of a call.
func same(one, v any) bool {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		return err == nil && one == any(f)
	}
	return reflect.DeepEqual(one, v)
}

func kindWords(k kinds) string {
	words := make([]string, len(k))
	for i, kind := range k {
		words[i] = map[string]string{
			"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
			"array": "a list", "object": "an object", "null": "null",
		}[kind]
		if words[i] == "" {
			words[i] = oneLine(kind, 40)
		}
	}
	return strings.Join(words, " or ")
}

func listed(values []any) string {
	var words []string
	for i, v := range values {
		if i == 3*maxWords {
			words = append(words, "...")
			break
		}
		words = append(words, short(v))
	}
	return strings.Join(words, ", ")
}

// short is a value for a message.
func short(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "this"
	}
	return oneLine(b.String(), 60)
}
