package jinja

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// normalize converts a value to nil, bool, int64, float64, string, Text, []any or
// map[string]any.
func normalize(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, Text:
		return v
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Bool:
		return r.Bool()
	case reflect.String:
		return r.String()
	case reflect.Float32, reflect.Float64:
		return r.Float()
	case reflect.Slice, reflect.Array:
		list := make([]any, r.Len())
		for i := range list {
			list[i] = normalize(r.Index(i).Interface())
		}
		return list
	case reflect.Map:
		m := make(map[string]any, r.Len())
		for _, key := range r.MapKeys() {
			m[fmt.Sprint(key.Interface())] = normalize(r.MapIndex(key).Interface())
		}
		return m
	}
	switch {
	case r.CanInt():
		return r.Int()
	case r.CanUint() && r.Uint() <= math.MaxInt64:
		return int64(r.Uint())
	}
	return fmt.Sprint(v)
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "none"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string, Text:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return "an undefined value"
}

func isText(v any) bool { return typeName(v) == "a string" }

// truth reports whether Python takes a value for true.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	}
	n, _ := length(v)
	return n > 0
}

// toNumber returns a number, and whether it is whole; ok is false for other values.
func toNumber(v any) (n float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true, true
		}
		return 0, true, true
	case int64:
		return float64(v), true, true
	case float64:
		return v, false, true
	}
	return 0, false, false
}

// toString returns a value as Python's str does.
func toString(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Text:
		return v.String()
	}
	return repr(v)
}

// repr returns a value as Python's repr does.
func repr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return reprFloat(v)
	case string:
		return reprString(v)
	case Text:
		return reprString(v.String())
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = repr(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, key := range sortedKeys(v) {
			parts = append(parts, reprString(key)+": "+repr(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

func reprFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func reprString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

func equal(a, b any) bool {
	x, _, ok := toNumber(a)
	y, _, ok2 := toNumber(b)
	if ok && ok2 {
		return x == y
	}
	if isText(a) && isText(b) {
		return toString(a) == toString(b)
	}
	return reflect.DeepEqual(a, b)
}

// compareOrder compares two numbers or two strings; ok is false for other values.
func compareOrder(a, b any) (order int, ok bool) {
	x, _, okX := toNumber(a)
	y, _, okY := toNumber(b)
	switch {
	case okX && okY:
		return cmp.Compare(x, y), true
	case isText(a) && isText(b):
		return cmp.Compare(toString(a), toString(b)), true
	}
	return 0, false
}

// contains reports whether a collection contains v; ok is false if that cannot be asked.
func contains(collection, v any) (yes, ok bool) {
	switch c := collection.(type) {
	case string, Text:
		return isText(v) && strings.Contains(toString(c), toString(v)), isText(v)
	case []any:
		for _, item := range c {
			if equal(item, v) {
				return true, true
			}
		}
		return false, true
	case map[string]any:
		_, yes := c[toString(v)]
		return yes, true
	}
	return false, false
}

// elements returns what a loop over a value visits.
func elements(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case string, Text:
		text := toString(v)
		list := make([]any, 0, len(text))
		for _, r := range text {
			list = append(list, string(r))
		}
		return list, true
	case map[string]any:
		list := []any{}
		for _, key := range sortedKeys(v) {
			list = append(list, key)
		}
		return list, true
	}
	return nil, false
}
