// Package schema decodes JSON into Go structs and reports every field that does not
// match its declaration in the struct. The struct tag "schema" has these options,
// separated by commas:
//
//	required    the field must be present and not null
//	notnull     the field must not be null
//	object      json.RawMessage, or a list of them: must be an object
//	scalar      json.RawMessage: must be a string or a number
//	min=N       integer: minimum
//	one=A|B     string: must be one of these
//	format=F    string: must be accepted by Reader.Formats[F]
//
// Other fields may be missing or null. A json.RawMessage that is required or notnull, but
// not object or scalar, may still be null; it is then set to null instead of skipped.
//
// Field names are case-sensitive. If an object contains a name twice, the last value is
// used.
package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/trajectories"
)

// Reader decodes values and reports problems.
type Reader struct {
	// OnProblem is called for each invalid value.
	OnProblem func(path, reason string)
	// AllowUnknown is called for each field that the struct does not have. It reports
	// whether the field is allowed. If AllowUnknown is nil, all fields are allowed.
	AllowUnknown func(path string) bool
	// Lenient makes the Reader accept "1" and true as numbers, and "yes" and 1 as
	// booleans, like Python's pydantic.
	Lenient bool
	// Formats are functions that validate strings. They return an error message, or
	// "" if the string is valid.
	Formats map[string]func(text string) (reason string)
	// TypeReaders are functions that decode values of certain types in place of the
	// Reader. They return false if the value is invalid.
	TypeReaders map[reflect.Type]func(raw json.RawMessage, v reflect.Value) bool

	path []string // keys from the root to the current value
}

// New returns a Reader that calls onProblem. Paths begin with root, unless it is empty.
func New(root string, onProblem func(path, reason string)) *Reader {
	r := &Reader{OnProblem: onProblem}
	if root != "" {
		r.path = []string{root}
	}
	return r
}

// Read decodes raw into the value that v points to, as far as raw is valid, and reports
// whether it is valid. The fields named in required are required in addition to those with
// the option "required".
func (r *Reader) Read(raw json.RawMessage, v any, required ...string) bool {
	if len(required) > 0 {
		return r.Struct(raw, reflect.ValueOf(v).Elem(), required...)
	}
	return r.value(raw, reflect.ValueOf(v).Elem(), "")
}

// Within calls f. While f runs, key is appended to the path of reported problems.
func (r *Reader) Within(key string, f func()) {
	r.path = append(r.path, key)
	f()
	r.path = r.path[:len(r.path)-1]
}

// Path returns the path of the current value.
func (r *Reader) Path() string { return strings.Join(r.path, ".") }

// Depth counts the occurrences of key in the current path.
func (r *Reader) Depth(key string) int {
	n := 0
	for _, k := range r.path {
		if k == key {
			n++
		}
	}
	return n
}

// Report calls OnProblem for the current value, and returns false.
func (r *Reader) Report(format string, args ...any) bool {
	r.OnProblem(r.Path(), fmt.Sprintf(format, args...))
	return false
}

// value decodes raw into v. tag has the options of the field.
func (r *Reader) value(raw json.RawMessage, v reflect.Value, tag string) bool {
	if read := r.TypeReaders[v.Type()]; read != nil {
		return read(raw, v)
	}
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(raw)
		return r.raw(raw, tag)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		ok := r.value(raw, v.Elem(), tag)
		if !ok {
			v.SetZero()
		}
		return ok
	case isUnmarshaler(v), v.Type() == reflect.TypeFor[[]byte]():
		return r.unmarshal(raw, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		return r.Struct(raw, v)
	case reflect.Slice:
		return r.list(raw, v, tag)
	case reflect.String:
		return r.string(raw, v, tag)
	case reflect.Bool:
		return r.boolean(raw, v)
	case reflect.Int, reflect.Int64:
		return r.integer(raw, v, tag)
	case reflect.Float64:
		return r.number(raw, v)
	}
	return r.unmarshal(raw, v)
}

func isUnmarshaler(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(json.Unmarshaler)
	return ok
}

// unmarshal decodes raw with encoding/json.
func (r *Reader) unmarshal(raw json.RawMessage, v reflect.Value) bool {
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		if v.Type() == reflect.TypeFor[time.Time]() {
			return r.Report("a time of RFC 3339 expected, got %s", trajectories.JSONKind(raw))
		}
		return r.Report("%s", ShortError(err))
	}
	return true
}

// raw checks the kind of a json.RawMessage.
func (r *Reader) raw(raw json.RawMessage, tag string) bool {
	kind := trajectories.JSONKind(raw)
	switch {
	case hasOption(tag, "object") && kind != "an object":
		return r.Report("an object expected, got %s", kind)
	case hasOption(tag, "scalar") && kind != "a string" && kind != "a number" && (!r.Lenient || kind != "true or false"):
		return r.Report("a string or a number expected, got %s", kind)
	}
	return true
}

// Struct decodes an object into the struct v. It does not call the TypeReader for the type
// of the struct, so that a TypeReader can call Struct. required is as in Read.
func (r *Reader) Struct(raw json.RawMessage, v reflect.Value, required ...string) bool {
	var fields map[string]json.RawMessage
	if kind := trajectories.JSONKind(raw); kind != "an object" {
		return r.Report("an object expected, got %s", kind)
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return r.Report("%s", ShortError(err))
	}
	ok := r.fields(fields, v, required)
	if r.AllowUnknown == nil {
		return ok
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) { // fields that the struct does not have
		r.Within(QuoteKey(key), func() { ok = r.AllowUnknown(r.Path()) && ok })
	}
	return ok
}

// fields decodes the fields of the struct v and removes them from the map.
func (r *Reader) fields(fields map[string]json.RawMessage, v reflect.Value, required []string) bool {
	ok := true
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			ok = r.fields(fields, v.Field(i), required) && ok
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		raw, exists := fields[name]
		delete(fields, name)
		tag := f.Tag.Get("schema")
		isRequired := hasOption(tag, "required") || slices.Contains(required, name)
		skipNull := string(raw) == "null" && !hasOption(tag, "notnull")
		if !isRequired && (!exists || skipNull) {
			continue
		}
		r.Within(name, func() {
			if !exists {
				ok = r.Report("required field is missing")
			} else if !r.value(raw, v.Field(i), tag) {
				ok = false
			}
		})
	}
	return ok
}

// list decodes a list. The resulting slice is never nil.
func (r *Reader) list(raw json.RawMessage, v reflect.Value, tag string) bool {
	if kind := trajectories.JSONKind(raw); kind != "a list" {
		return r.Report("a list expected, got %s", kind)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return r.Report("%s", ShortError(err))
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	ok := true
	for i, e := range elements {
		r.Within(strconv.Itoa(i), func() {
			ok = r.value(e, v.Index(i), tag) && ok
		})
	}
	return ok
}

// string decodes a string and checks the options.
func (r *Reader) string(raw json.RawMessage, v reflect.Value, tag string) bool {
	var s string
	if kind := trajectories.JSONKind(raw); kind != "a string" || json.Unmarshal(raw, &s) != nil {
		return r.Report("a string expected, got %s", kind)
	}
	v.SetString(s)
	if values, ok := optionValue(tag, "one"); ok && !slices.Contains(strings.Split(values, "|"), s) {
		return r.Report("one of %s expected, got %.60q", strings.ReplaceAll(values, "|", ", "), s)
	}
	if format, ok := optionValue(tag, "format"); ok {
		if reason := r.Formats[format](s); reason != "" {
			return r.Report("%s", reason)
		}
	}
	return true
}

// hasOption reports whether a tag has an option.
func hasOption(tag, option string) bool { return slices.Contains(strings.Split(tag, ","), option) }

// optionValue returns the value of an option of the form NAME=VALUE.
func optionValue(tag, name string) (string, bool) {
	for _, o := range strings.Split(tag, ",") {
		if value, ok := strings.CutPrefix(o, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
