// Package schema reads JSON into Go structs and names every field that is not as
// the struct declares it. The tag schema of a field has, separated by commas:
//
//	required    the field may not be missing or null
//	notnull     the field may be missing, and not null
//	object      of a json.RawMessage, or of those of a list: an object is needed
//	scalar      of a json.RawMessage: a string or a number is needed
//	min=N       of a whole number
//	one=A|B     of a string: one of these is needed
//	format=F    of a string: Reader.Formats[F] has to take it
//
// Other fields may be missing or null. Names are compared exactly, and of a name
// that an object has twice the last one counts.
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

// Reader reads values, and reports what is wrong with them.
type Reader struct {
	// Problem is called for each value that is wrong.
	Problem func(path, reason string)
	// Unknown is called for fields that a struct does not have, and says whether
	// they are allowed; without it, they are.
	Unknown func(path string) bool
	// Lax takes "1", 1.0 and true for a number and "yes" for a truth value, as
	// Python's pydantic does.
	Lax bool
	// Formats return what is wrong with a text, or nothing.
	Formats map[string]func(text string) (reason string)
	// Types read values of a type in place of the Reader; false means that it is wrong.
	Types map[reflect.Type]func(raw json.RawMessage, v reflect.Value) bool

	path []string
}

// New returns a Reader whose paths begin with root, which may be empty.
func New(root string, problem func(path, reason string)) *Reader {
	r := &Reader{Problem: problem}
	if root != "" {
		r.path = []string{root}
	}
	return r
}

// Read reads a value into what v points to, as far as it fits; false means that
// something was wrong. The fields named here are required beside those with the tag.
func (r *Reader) Read(raw json.RawMessage, v any, required ...string) bool {
	if len(required) > 0 {
		return r.Struct(raw, reflect.ValueOf(v).Elem(), required...)
	}
	return r.value(raw, reflect.ValueOf(v).Elem(), "")
}

// At calls f with a part of the current value as the place of problems.
func (r *Reader) At(key string, f func()) {
	r.path = append(r.path, key)
	f()
	r.path = r.path[:len(r.path)-1]
}

// Path is the place of the current value.
func (r *Reader) Path() string { return strings.Join(r.path, ".") }

// Depth counts how often a key stands in the current path.
func (r *Reader) Depth(key string) int {
	n := 0
	for _, k := range r.path {
		if k == key {
			n++
		}
	}
	return n
}

// Wrong reports a problem with the current value, and returns false.
func (r *Reader) Wrong(format string, args ...any) bool {
	r.Problem(r.Path(), fmt.Sprintf(format, args...))
	return false
}

func (r *Reader) value(raw json.RawMessage, v reflect.Value, tag string) bool {
	if read := r.Types[v.Type()]; read != nil {
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
		return r.text(raw, v, tag)
	case reflect.Bool:
		return r.truth(raw, v)
	case reflect.Int, reflect.Int64:
		return r.whole(raw, v, tag)
	case reflect.Float64:
		return r.number(raw, v)
	}
	return r.unmarshal(raw, v)
}

func isUnmarshaler(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(json.Unmarshaler)
	return ok
}

func (r *Reader) unmarshal(raw json.RawMessage, v reflect.Value) bool {
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		if v.Type() == reflect.TypeFor[time.Time]() {
			return r.Wrong("a time of RFC 3339 is needed, this is %s", trajectories.KindOf(raw))
		}
		return r.Wrong("%s", Explain(err))
	}
	return true
}

func (r *Reader) raw(raw json.RawMessage, tag string) bool {
	kind := trajectories.KindOf(raw)
	switch {
	case has(tag, "object") && kind != "an object":
		return r.Wrong("an object is needed, this is %s", kind)
	case has(tag, "scalar") && kind != "a string" && kind != "a number" && (!r.Lax || kind != "true or false"):
		return r.Wrong("a string or a number is needed, this is %s", kind)
	}
	return true
}

// Struct reads the fields of an object into those of a struct.
func (r *Reader) Struct(raw json.RawMessage, v reflect.Value, required ...string) bool {
	var fields map[string]json.RawMessage
	if kind := trajectories.KindOf(raw); kind != "an object" {
		return r.Wrong("an object is needed, this is %s", kind)
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return r.Wrong("%s", Explain(err))
	}
	ok := r.fields(fields, v, required)
	if r.Unknown == nil {
		return ok
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) { // those that are left
		r.At(Key(key), func() { ok = r.Unknown(r.Path()) && ok })
	}
	return ok
}

// fields takes those of the struct out of the object.
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
		raw, there := fields[name]
		delete(fields, name)
		tag := f.Tag.Get("schema")
		must := has(tag, "required") || slices.Contains(required, name)
		null := string(raw) == "null" && !has(tag, "notnull")
		if !must && (!there || null) {
			continue
		}
		r.At(name, func() {
			if !there {
				ok = r.Wrong("required field is missing")
			} else if !r.value(raw, v.Field(i), tag) {
				ok = false
			}
		})
	}
	return ok
}

// list reads each element. The list is not nil then.
func (r *Reader) list(raw json.RawMessage, v reflect.Value, tag string) bool {
	if kind := trajectories.KindOf(raw); kind != "a list" {
		return r.Wrong("a list is needed, this is %s", kind)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return r.Wrong("%s", Explain(err))
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	ok := true
	for i, e := range elements {
		r.At(strconv.Itoa(i), func() {
			ok = r.value(e, v.Index(i), tag) && ok
		})
	}
	return ok
}

func (r *Reader) text(raw json.RawMessage, v reflect.Value, tag string) bool {
	var s string
	if kind := trajectories.KindOf(raw); kind != "a string" || json.Unmarshal(raw, &s) != nil {
		return r.Wrong("a string is needed, this is %s", kind)
	}
	v.SetString(s)
	if words, ok := option(tag, "one"); ok && !slices.Contains(strings.Split(words, "|"), s) {
		return r.Wrong("one of %s is needed, got %.60q", strings.ReplaceAll(words, "|", ", "), s)
	}
	if format, ok := option(tag, "format"); ok {
		if reason := r.Formats[format](s); reason != "" {
			return r.Wrong("%s", reason)
		}
	}
	return true
}

// has says whether a tag has a word.
func has(tag, word string) bool { return slices.Contains(strings.Split(tag, ","), word) }

// option is the value of NAME=VALUE in a tag.
func option(tag, name string) (string, bool) {
	for _, o := range strings.Split(tag, ",") {
		if value, ok := strings.CutPrefix(o, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
