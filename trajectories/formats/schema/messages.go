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

// ShortError returns the message of a JSON error, shortened and without names of Go
// types.
func ShortError(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if typeError, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = fmt.Sprintf("%s expected, got %s", expected(typeError.Type), actual(typeError.Value))
	}
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// expected describes the JSON type for a Go type.
func expected(t reflect.Type) string {
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
		return expected(t.Elem())
	}
	return "a whole number"
}

// actual describes a JSON value as named by encoding/json.
func actual(value string) string {
	switch kind, _, _ := strings.Cut(value, " "); kind { // numbers are followed by their value
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

// SyntaxError returns the syntax error of data, with the line.
func SyntaxError(data []byte) string {
	err := json.Unmarshal(data, new(json.RawMessage))
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(0, int(s.Offset)), len(data))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:at], []byte("\n")), err)
	}
	return ShortError(err)
}

var plainKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w$-]{1,80}$`) })

// QuoteKey returns a field name for messages. Unusual names are quoted and truncated.
func QuoteKey(key string) string {
	if plainKey().MatchString(key) {
		return key
	}
	return fmt.Sprintf("%.80q", key)
}
