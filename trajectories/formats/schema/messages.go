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

// ShortError returns the message of an encoding/json error without names of Go types, and
// truncated to about 300 bytes.
func ShortError(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if typeError, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = fmt.Sprintf("%s expected, got %s", expectedKind(typeError.Type), actualKind(typeError.Value))
	}
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// expectedKind returns the kind of JSON value for a Go type, with an article.
func expectedKind(t reflect.Type) string {
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
		return expectedKind(t.Elem())
	}
	return "a whole number"
}

// actualKind returns the kind of a JSON value with an article, given
// json.UnmarshalTypeError.Value.
func actualKind(value string) string {
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

// SyntaxError returns the message of the first syntax error in data, with its line number.
func SyntaxError(data []byte) string {
	err := json.Unmarshal(data, new(json.RawMessage))
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset := min(max(0, int(s.Offset)), len(data))
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:offset], []byte("\n")), err)
	}
	return ShortError(err)
}

// plainKey matches field names that need no quotes in messages.
var plainKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w$-]{1,80}$`) })

// QuoteKey returns a field name for messages. It quotes and truncates unusual names.
func QuoteKey(key string) string {
	if plainKey().MatchString(key) {
		return key
	}
	return fmt.Sprintf("%.80q", key)
}
