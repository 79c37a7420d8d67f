package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// longText is an output of which the middle is left out: parts of its beginning and its
// end are exact, and its length is the variable lengthVariable.
type longText string

// lengthVariable is the number of characters of a longText. No template can name it.
const lengthVariable = "length of the output"

// jinjaFilters returns the filters of templates. An error of the value, such as an undefined
// attribute, is the result of all but default.
func jinjaFilters() map[string]exec.FilterFunction {
	type values = []*exec.Value
	filters := map[string]exec.FilterFunction{}
	add := func(names string, parameters string, apply func(e *exec.Evaluator, v *exec.Value, args values) any) {
		for name := range strings.FieldsSeq(names) {
			filters[name] = func(e *exec.Evaluator, v *exec.Value, params *exec.VarArgs) *exec.Value {
				args, err := arguments(name, strings.Fields(parameters), params)
				switch {
				case err != nil:
					return exec.AsValue(err)
				case v.IsError() && name != "default" && name != "d":
					return v
				}
				return exec.ToValue(apply(e, v, args))
			}
		}
	}
	onText := func(names string, apply func(string) string) {
		add(names, "", func(_ *exec.Evaluator, v *exec.Value, _ values) any { return apply(v.String()) })
	}
	onText("upper", strings.ToUpper)
	onText("lower", strings.ToLower)
	onText("string safe", func(s string) string { return s })
	onText("e escape", html.EscapeString)
	add("default d", "default_value boolean", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		switch {
		case !v.IsError() && (args[1] == nil || !args[1].IsTrue() || v.IsTrue()):
			return v
		case args[0] == nil:
			return ""
		}
		return args[0]
	})
	add("length count", "", func(e *exec.Evaluator, v *exec.Value, _ values) any {
		if _, ok := v.Interface().(longText); ok {
			n, _ := e.Environment.Context.Get(lengthVariable)
			return n
		}
		if !v.IsIterable() {
			return errors.New("it has no length")
		}
		return v.Len()
	})
	add("tojson", "indent", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		text := toJSON(v)
		if args[0] == nil {
			return text
		}
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(text), "", strings.Repeat(" ", min(max(args[0].Integer(), 0), 16))); err != nil {
			return err
		}
		return b.String()
	})
	add("trim", "chars", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		if args[0] == nil {
			return strings.TrimSpace(v.String())
		}
		return strings.Trim(v.String(), args[0].String())
	})
	add("replace", "old new", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		if args[0] == nil || args[1] == nil {
			return errors.New("replace needs an old and a new text")
		}
		return strings.ReplaceAll(v.String(), args[0].String(), args[1].String())
	})
	add("int", "default", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		f, err := number(v)
		switch {
		case v.IsInteger():
			return v
		case err == nil:
			return int(f)
		case args[0] != nil:
			return args[0]
		}
		return 0
	})
	add("float", "default", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		f, err := number(v)
		if err != nil && args[0] != nil {
			return args[0]
		}
		return f
	})
	add("round", "precision", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		digits := 0
		if args[0] != nil {
			digits = args[0].Integer()
		}
		f, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'f', digits, 64), 64) // what FormatFloat wrote
		return f
	})
	add("abs", "", func(_ *exec.Evaluator, v *exec.Value, _ values) any {
		if v.IsInteger() {
			return max(v.Integer(), -v.Integer())
		}
		return math.Abs(v.Float())
	})
	add("indent", "width first blank", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		width, lines := 4, splitLines(v.String()+"\n")
		if args[0] != nil {
			width = args[0].Integer()
		}
		for i, line := range lines {
			isIndented := line != "" || args[2] != nil && args[2].IsTrue()
			if i == 0 {
				isIndented = args[1] != nil && args[1].IsTrue()
			}
			if isIndented {
				lines[i] = strings.Repeat(" ", min(max(width, 0), 100)) + line
			}
		}
		return strings.Join(lines, "\n")
	})
	add("list", "", func(_ *exec.Evaluator, v *exec.Value, _ values) any { return elements(v) })
	add("join", "d", func(_ *exec.Evaluator, v *exec.Value, args values) any {
		var separator string
		if args[0] != nil {
			separator = args[0].String()
		}
		var texts []string
		for _, element := range elements(v) {
			texts = append(texts, exec.ToValue(element).String())
		}
		return strings.Join(texts, separator)
	})
	add("first", "", func(_ *exec.Evaluator, v *exec.Value, _ values) any {
		if all := elements(v); len(all) > 0 {
			return all[0]
		}
		return errors.New("the first element is undefined")
	})
	add("last", "", func(_ *exec.Evaluator, v *exec.Value, _ values) any {
		if all := elements(v); len(all) > 0 {
			return all[len(all)-1]
		}
		return errors.New("the last element is undefined")
	})
	return filters
}

// arguments returns the arguments of a filter in the order of its parameters; nil for one
// that is not given.
func arguments(filter string, parameters []string, given *exec.VarArgs) ([]*exec.Value, error) {
	args := make([]*exec.Value, max(len(parameters), len(given.Args)))
	if copy(args, given.Args); len(args) > len(parameters) {
		return nil, fmt.Errorf("the filter %s takes %d arguments", filter, len(parameters))
	}
	for name, v := range given.KwArgs {
		i := slices.Index(parameters, name)
		if i < 0 {
			return nil, fmt.Errorf("the filter %s has no argument %s", filter, name)
		}
		args[i] = v
	}
	return args, nil
}

// number returns the number that a value is or, as a string, has.
func number(v *exec.Value) (float64, error) {
	if v.IsString() {
		return strconv.ParseFloat(strings.TrimSpace(v.String()), 64) //nolint:wrapcheck // replaced by a default
	}
	if v.IsBool() && v.Bool() {
		return 1, nil
	}
	return v.Float(), nil
}

// elements returns the elements of a list, the characters of a string, or the keys of a mapping.
func elements(v *exec.Value) []any {
	all := []any{}
	if v.IsString() {
		for _, r := range v.String() {
			all = append(all, string(r))
		}
		return all
	}
	v.Iterate(func(_, _ int, element, _ *exec.Value) bool {
		all = append(all, element.Interface())
		return true
	}, func() {})
	return all
}

// toJSON writes a value as Jinja2 does: keys are sorted, and characters that are not ASCII or are
// special in HTML are escaped.
func toJSON(v *exec.Value) string {
	switch {
	case v.IsNil():
		return "null"
	case v.IsBool():
		return strconv.FormatBool(v.Bool())
	case v.IsNumber():
		return v.String()
	case v.IsDict():
		keys := v.Keys()
		slices.SortFunc(keys, func(a, b *exec.Value) int { return strings.Compare(a.String(), b.String()) })
		var texts []string
		for _, key := range keys {
			value, _ := v.GetItem(key.Interface())
			texts = append(texts, quoteJSON(key.String())+": "+toJSON(value))
		}
		return "{" + strings.Join(texts, ", ") + "}"
	case v.IsList():
		var texts []string
		for _, element := range elements(v) {
			texts = append(texts, toJSON(exec.ToValue(element)))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return quoteJSON(v.String())
}

func joined(values []*exec.Value) (texts []string) {
	for _, v := range values {
		texts = append(texts, v.String())
	}
	return texts
}

func quoteJSON(s string) string {
	quoted, _ := json.Marshal(s) // a string has no error; it escapes <, > and &
	var b strings.Builder
	for _, r := range string(quoted) {
		switch {
		case r == '\'':
			b.WriteString(`\u0027`)
		case r < 0x7f:
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				_, _ = fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// jinjaTests returns the tests of templates.
func jinjaTests() map[string]exec.TestFunction {
	tests := map[string]exec.TestFunction{
		"defined":   func(_ *exec.Evaluator, v *exec.Value, _ *exec.VarArgs) (bool, error) { return !v.IsError(), nil },
		"undefined": func(_ *exec.Evaluator, v *exec.Value, _ *exec.VarArgs) (bool, error) { return v.IsError(), nil },
		"in": func(_ *exec.Evaluator, v *exec.Value, args *exec.VarArgs) (bool, error) {
			if v.IsError() {
				return false, v
			}
			return args.First().Contains(v), nil
		},
	}
	for name, test := range map[string]func(*exec.Value) bool{
		"none": (*exec.Value).IsNil, "string": (*exec.Value).IsString, "number": (*exec.Value).IsNumber, "boolean": (*exec.Value).IsBool,
		"mapping": (*exec.Value).IsDict, "sequence": (*exec.Value).IsIterable,
	} {
		tests[name] = func(_ *exec.Evaluator, v *exec.Value, _ *exec.VarArgs) (bool, error) {
			if v.IsError() {
				return false, v
			}
			return test(v), nil
		}
	}
	return tests
}

// jinjaMethods returns the methods of strings and mappings. Those of the library are not
// used, because its strip, split and others fail without arguments.
func jinjaMethods() exec.Methods {
	methods := map[string]exec.Method[string]{}
	add := func(name string, least, most int, apply func(s string, args []string) any) {
		methods[name] = func(s string, _ *exec.Value, given *exec.VarArgs) (any, error) {
			if len(given.KwArgs) > 0 || len(given.Args) < least || len(given.Args) > most {
				return nil, fmt.Errorf("the method %s is not supported with these arguments", name)
			}
			return apply(s, joined(given.Args)), nil
		}
	}
	cut := func(args []string) func(rune) bool {
		if len(args) == 0 {
			return unicode.IsSpace
		}
		return func(r rune) bool { return strings.ContainsRune(args[0], r) }
	}
	add("upper", 0, 0, func(s string, _ []string) any { return strings.ToUpper(s) })
	add("lower", 0, 0, func(s string, _ []string) any { return strings.ToLower(s) })
	add("strip", 0, 1, func(s string, args []string) any { return strings.TrimFunc(s, cut(args)) })
	add("lstrip", 0, 1, func(s string, args []string) any { return strings.TrimLeftFunc(s, cut(args)) })
	add("rstrip", 0, 1, func(s string, args []string) any { return strings.TrimRightFunc(s, cut(args)) })
	add("startswith", 1, 1, func(s string, args []string) any { return strings.HasPrefix(s, args[0]) })
	add("endswith", 1, 1, func(s string, args []string) any { return strings.HasSuffix(s, args[0]) })
	add("replace", 2, 2, func(s string, args []string) any { return strings.ReplaceAll(s, args[0], args[1]) })
	add("splitlines", 0, 0, func(s string, _ []string) any { return splitLines(s) })
	add("split", 0, 1, func(s string, args []string) any {
		if len(args) == 0 {
			return strings.Fields(s)
		}
		return strings.Split(s, args[0])
	})
	return exec.Methods{
		Str: exec.NewMethodSet(methods), Bool: &exec.MethodSet[bool]{}, Int: &exec.MethodSet[int]{}, Float: &exec.MethodSet[float64]{}, List: &exec.MethodSet[[]any]{},
		Dict: exec.NewMethodSet(map[string]exec.Method[map[string]any]{
			"get": func(m map[string]any, _ *exec.Value, given *exec.VarArgs) (any, error) {
				if v, ok := m[given.First().String()]; ok || len(given.Args) < 2 {
					return v, nil
				}
				return given.Args[1].Interface(), nil
			},
			"items": func(m map[string]any, _ *exec.Value, _ *exec.VarArgs) (any, error) {
				pairs := []any{}
				for _, key := range slices.Sorted(maps.Keys(m)) {
					pairs = append(pairs, []any{key, m[key]})
				}
				return pairs, nil
			},
		}),
	}
}

// lineEnds makes \n of what ends a line in Python.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n", "\x1e", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// splitLines returns the lines of a text without their ends.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(lineEnds.Replace(text), "\n"), "\n")
}
