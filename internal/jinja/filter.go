package jinja

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// filterNames are the filters, sorted.
var filterNames = []string{
	"abs", "count", "d", "default", "e", "escape", "first", "float", "indent", "int", "join", "last", "length", "list",
	"lower", "replace", "round", "safe", "string", "tojson", "trim", "upper",
}

// parameters names the parameters of the filters that have some.
var parameters = map[string][]string{
	"d": {"default_value", "boolean"}, "default": {"default_value", "boolean"}, "float": {"default"},
	"indent": {"width", "first", "blank"}, "int": {"default"}, "join": {"d"}, "replace": {"old", "new"},
	"round": {"precision"}, "tojson": {"indent"}, "trim": {"chars"},
}

func (s *scope) filter(x filter) (any, error) {
	v, line, err := s.eval(x.x)
	if err != nil {
		return nil, err
	}
	args, err := s.filterArguments(x)
	if err != nil {
		return nil, err
	}
	u, isUndefined := v.(undefined)
	if x.name == "default" || x.name == "d" {
		useDefault := isUndefined
		if b, ok := args["boolean"]; ok && !isUndefined {
			useDefault = truth(b) && !truth(v)
		}
		if !useDefault {
			return v, nil
		}
		if d, ok := args["default_value"]; ok {
			return d, nil
		}
		return "", nil
	}
	if isUndefined {
		return nil, &Error{line, u.what + " is undefined"}
	}
	return s.apply(x, v, args)
}

func (s *scope) filterArguments(x filter) (map[string]any, error) {
	names := parameters[x.name]
	args := map[string]any{}
	for i, a := range x.args {
		id := x.names[i]
		if id == "" && i < len(names) {
			id = names[i]
		}
		if !slices.Contains(names, id) {
			return nil, &Error{x.line, fmt.Sprintf("the filter %s has no such argument", x.name)}
		}
		v, err := s.value(a)
		if err != nil {
			return nil, err
		}
		args[id] = v
	}
	return args, nil
}

// apply applies a filter to a value that exists.
func (s *scope) apply(x filter, v any, args map[string]any) (any, error) {
	invalid := func() (any, error) {
		return nil, &Error{x.line, fmt.Sprintf("the filter %s cannot be applied to %s", x.name, typeName(v))}
	}
	if err := s.spend(x.line, 1+size(v)/16); err != nil {
		return nil, err
	}
	switch x.name {
	case "length", "count":
		if n, ok := length(v); ok {
			return n, nil
		}
		return invalid()
	case "tojson":
		var b strings.Builder
		writeJSON(&b, v, args["indent"], 0)
		return s.text(x.line, b.String())
	case "string", "safe":
		return toString(v), nil
	case "upper":
		return strings.ToUpper(toString(v)), nil
	case "lower":
		return strings.ToLower(toString(v)), nil
	case "trim":
		if chars, ok := args["chars"].(string); ok {
			return strings.Trim(toString(v), chars), nil
		}
		return strings.TrimFunc(toString(v), isSpace), nil
	case "e", "escape":
		return s.text(x.line, htmlEscaper.Replace(toString(v)))
	case "replace":
		return s.replace(x.line, toString(v), toString(args["old"]), toString(args["new"]))
	case "int":
		return toInt(v, args["default"]), nil
	case "float":
		return toFloat(v, args["default"]), nil
	case "abs":
		n, isInt, ok := toNumber(v)
		switch {
		case !ok:
			return invalid()
		case isInt:
			return int64(math.Abs(n)), nil
		}
		return math.Abs(n), nil
	case "round":
		n, _, ok := toNumber(v)
		precision, isInt := args["precision"].(int64)
		if !ok || args["precision"] != nil && (!isInt || precision < 0 || precision > 15) {
			return invalid()
		}
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(n, 'f', int(precision), 64), 64)
		return rounded, err
	case "indent":
		return s.indent(x, toString(v), args)
	}
	items, ok := elements(v)
	if !ok {
		return invalid()
	}
	switch x.name {
	case "list":
		return items, nil
	case "join":
		var parts []string
		for _, item := range items {
			parts = append(parts, toString(item))
		}
		separator := ""
		if d, ok := args["d"]; ok {
			separator = toString(d)
		}
		return s.text(x.line, strings.Join(parts, separator))
	}
	if len(items) == 0 {
		return undefined{"the " + x.name + " item of an empty sequence"}, nil
	}
	if x.name == "first" {
		return items[0], nil
	}
	return items[len(items)-1], nil
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// indent indents the lines of a text except the first and blank ones, unless the
// arguments say otherwise.
func (s *scope) indent(x filter, text string, args map[string]any) (any, error) {
	prefix := "    "
	switch width := args["width"].(type) {
	case int64:
		prefix = strings.Repeat(" ", int(min(max(width, 0), 1000)))
	case string:
		prefix = width
	}
	if len(text)+(1+strings.Count(text, "\n"))*len(prefix) > maxOutput {
		return nil, &Error{x.line, "the result of indent is too long"}
	}
	var lines []string
	for _, line := range splitLines(text + "\n") {
		lines = append(lines, toString(line))
	}
	for i, line := range lines {
		if i == 0 && !truth(args["first"]) || i > 0 && line == "" && !truth(args["blank"]) {
			continue
		}
		lines[i] = prefix + line
	}
	return s.text(x.line, strings.Join(lines, "\n"))
}

// toInt converts a value like the filter int.
func toInt(v, fallback any) any {
	if text, ok := v.(string); ok {
		text = strings.TrimFunc(text, isSpace)
		if n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			v = f
		}
	}
	if n, _, ok := toNumber(v); ok && math.Abs(n) < 1<<63 {
		return int64(n)
	}
	if fallback != nil {
		return fallback
	}
	return int64(0)
}

// toFloat converts a value like the filter float.
func toFloat(v, fallback any) any {
	if text, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(text, isSpace), 64); err == nil {
			return f
		}
	}
	if n, _, ok := toNumber(v); ok {
		return n
	}
	if fallback != nil {
		return fallback
	}
	return 0.0
}

// writeJSON writes a value as Jinja2's tojson does: Python's json.dumps with sorted
// keys, and the characters that HTML gives a meaning escaped.
func writeJSON(b *strings.Builder, v, indent any, depth int) {
	newline := func(depth int) {
		if n, ok := indent.(int64); ok {
			b.WriteString("\n" + strings.Repeat(" ", min(int(n), 100)*depth))
		}
	}
	comma := ", "
	if indent != nil {
		comma = ","
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case float64:
		switch {
		case math.IsNaN(v):
			b.WriteString("NaN")
		case math.IsInf(v, 0):
			b.WriteString(map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0])
		default:
			b.WriteString(toString(v))
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(comma)
			}
			newline(depth + 1)
			writeJSON(b, item, indent, depth+1)
		}
		if len(v) > 0 {
			newline(depth)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				b.WriteString(comma)
			}
			newline(depth + 1)
			writeJSONString(b, key)
			b.WriteString(": ")
			writeJSON(b, v[key], indent, depth+1)
		}
		if len(v) > 0 {
			newline(depth)
		}
		b.WriteByte('}')
	default:
		writeJSONString(b, toString(v))
	}
}

func writeJSONString(b *strings.Builder, s string) {
	escapes := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}
	b.WriteByte('"')
	for _, r := range s {
		escape, ok := escapes[r]
		switch {
		case ok:
			b.WriteString(escape)
		case r < 0x20 || r == '<' || r == '>' || r == '&' || r == '\'' || r >= 0x7f && r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// size returns about how many bytes a value has.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case Text:
		return len(v.Head) + len(v.Tail)
	case []any:
		n := 0
		for _, item := range v {
			n += 16 + size(item)
		}
		return n
	case map[string]any:
		n := 0
		for key, item := range v {
			n += 16 + len(key) + size(item)
		}
		return n
	}
	return 16
}

// length returns the length of a value.
func length(v any) (int64, bool) {
	switch v := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(v)), true
	case Text:
		return v.Chars, true
	case []any:
		return int64(len(v)), true
	case map[string]any:
		return int64(len(v)), true
	}
	return 0, false
}
