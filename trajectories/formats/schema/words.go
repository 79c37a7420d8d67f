package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// Explain is an error of encoding/json, short and without Go's names.
func Explain(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = fmt.Sprintf("%s is needed, this is %s", wanted(wrong.Type), found(wrong.Value))
	}
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// wanted says in words what a Go type takes.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "a whole number"
}

// found is what encoding/json calls a value, in the words used here.
func found(value string) string {
	switch kind, _, _ := strings.Cut(value, " "); kind { // a number may stand there itself
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	}
	return "the " + value
}

// SyntaxError says what makes a text no JSON, and on which line.
func SyntaxError(data []byte) string {
	err := json.Unmarshal(data, new(json.RawMessage))
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(0, int(s.Offset)), len(data))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:at], []byte("\n")), err)
	}
	return Explain(err)
}

var plainKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w$-]{1,80}$`) })

// Key bounds and quotes the name of a field that may be anything.
func Key(key string) string {
	if plainKey().MatchString(key) {
		return key
	}
	return fmt.Sprintf("%.80q", key)
}
