package jinja

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// undefined is a variable or an attribute that does not exist. Only tests and default
// accept it.
type undefined struct{ what string }

// value evaluates an expression whose value must exist.
func (s *scope) value(x expr) (any, error) {
	v, line, err := s.eval(x)
	if u, ok := v.(undefined); ok && err == nil {
		return nil, &Error{line, u.what + " is undefined"}
	}
	return v, err
}

// eval evaluates an expression. The line is known for expressions that can be undefined.
func (s *scope) eval(x expr) (v any, line int, err error) {
	if err := s.spend(0, 1); err != nil {
		return nil, 0, err
	}
	switch x := x.(type) {
	case literal:
		return x.v, 0, nil
	case name:
		if v, ok := s.vars[x.id]; ok {
			return v, x.line, nil
		}
		return undefined{x.id}, x.line, nil
	case list:
		v, err = s.values(x.items)
	case dict:
		v, err = s.dict(x)
	case unary:
		line = x.line
		v, err = s.unary(x)
	case binary:
		line = x.line
		v, err = s.binary(x)
	case compare:
		v, err = s.compare(x)
	case choice:
		return s.choice(x)
	case item:
		line = x.line
		v, err = s.item(x)
	case slice:
		v, err = s.slice(x)
	case call:
		v, err = s.call(x)
	case filter:
		line = x.line
		v, err = s.filter(x)
	case test:
		v, err = s.test(x)
	}
	return v, line, err
}

func (s *scope) values(xs []expr) ([]any, error) {
	list := make([]any, len(xs))
	for i, x := range xs {
		v, err := s.value(x)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (s *scope) dict(x dict) (any, error) {
	keys, err := s.values(x.keys)
	if err != nil {
		return nil, err
	}
	values, err := s.values(x.values)
	m := map[string]any{}
	for i := range values {
		m[toString(keys[i])] = values[i]
	}
	return m, err
}

func (s *scope) choice(x choice) (any, int, error) {
	cond, err := s.value(x.cond)
	switch {
	case err != nil:
		return nil, 0, err
	case truth(cond):
		return s.eval(x.yes)
	case x.no == nil:
		return "", 0, nil
	}
	return s.eval(x.no)
}

func (s *scope) unary(x unary) (any, error) {
	v, err := s.value(x.x)
	if err != nil {
		return nil, err
	}
	if x.op == "not" {
		return !truth(v), nil
	}
	if x.op == "+" {
		return arithmetic("+", int64(0), v, x.line)
	}
	return arithmetic("-", int64(0), v, x.line)
}

func (s *scope) binary(x binary) (any, error) {
	a, err := s.value(x.x)
	if err != nil {
		return nil, err
	}
	switch {
	case x.op == "and" && !truth(a), x.op == "or" && truth(a):
		return a, nil
	}
	b, err := s.value(x.y)
	if err != nil || x.op == "and" || x.op == "or" {
		return b, err
	}
	if x.op == "~" {
		return s.text(x.line, toString(a)+toString(b))
	}
	if text, ok := a.(string); ok {
		return s.textOperation(x, text, b)
	}
	if l, ok := a.([]any); ok && x.op == "+" {
		if m, ok := b.([]any); ok {
			return slices.Concat(l, m), s.spend(x.line, len(l)+len(m))
		}
	}
	return arithmetic(x.op, a, b, x.line)
}

// text returns a new string and spends work on it.
func (s *scope) text(line int, text string) (any, error) {
	if len(text) > maxOutput {
		return nil, &Error{line, fmt.Sprintf("a string is longer than %d MB", maxOutput>>20)}
	}
	return text, s.spend(line, len(text)/16)
}

// textOperation evaluates an operator with a string on its left.
func (s *scope) textOperation(x binary, a string, b any) (any, error) {
	switch b := b.(type) {
	case string:
		if x.op == "+" {
			return s.text(x.line, a+b)
		}
	case int64:
		if x.op == "*" {
			if b > 0 && len(a) > 0 && b > int64(maxOutput/len(a)) {
				return nil, &Error{x.line, "a repeated string is too long"}
			}
			return s.text(x.line, strings.Repeat(a, int(max(b, 0))))
		}
	}
	if x.op == "%" {
		return nil, &Error{x.line, "the operator % with a string is not supported; use ~ and round"}
	}
	return nil, &Error{x.line, fmt.Sprintf("%s %s %s is not possible", typeName(a), x.op, typeName(b))}
}

// arithmetic evaluates an operator on numbers as Python does.
func arithmetic(op string, a, b any, line int) (any, error) {
	x, xInt, ok := toNumber(a)
	y, yInt, ok2 := toNumber(b)
	if !ok || !ok2 {
		return nil, &Error{line, fmt.Sprintf("%s %s %s is not possible", typeName(a), op, typeName(b))}
	}
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		return nil, &Error{line, "division by zero"}
	}
	var f float64
	switch op {
	case "+":
		f = x + y
	case "-":
		f = x - y
	case "*":
		f = x * y
	case "/":
		return x / y, nil
	case "//":
		f = math.Floor(x / y)
	case "%":
		f = x - y*math.Floor(x/y)
	case "**":
		if xInt && yInt && y < 0 {
			return math.Pow(x, y), nil
		}
		f = math.Pow(x, y)
	}
	if !xInt || !yInt {
		return f, nil
	}
	if math.Abs(x) > 1<<53 || math.Abs(y) > 1<<53 || !(math.Abs(f) <= 1<<53) {
		return nil, &Error{line, "a number is too large"}
	}
	return int64(f), nil // exact up to 2**53
}

func (s *scope) compare(x compare) (any, error) {
	a, err := s.value(x.x)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		b, err := s.value(x.rest[i])
		if err != nil {
			return nil, err
		}
		yes, err := compareValues(op, a, b, x.line)
		if err != nil || !yes {
			return false, err
		}
		a = b
	}
	return true, nil
}

func compareValues(op string, a, b any, line int) (bool, error) {
	switch op {
	case "==":
		return equal(a, b), nil
	case "!=":
		return !equal(a, b), nil
	case "in", "not in":
		yes, ok := contains(b, a)
		if !ok {
			return false, &Error{line, fmt.Sprintf("%s in %s is not possible", typeName(a), typeName(b))}
		}
		return yes == (op == "in"), nil
	}
	order, ok := compareOrder(a, b)
	if !ok {
		return false, &Error{line, fmt.Sprintf("%s %s %s is not possible", typeName(a), op, typeName(b))}
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	default:
		return order >= 0, nil
	}
}

// item returns x.key, which is undefined if it does not exist.
func (s *scope) item(x item) (any, error) {
	v, err := s.value(x.x)
	if err != nil {
		return nil, err
	}
	key, err := s.value(x.key)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case map[string]any:
		if value, ok := v[toString(key)]; ok {
			return value, nil
		}
	case []any:
		if i, ok := index(key, len(v)); ok {
			return v[i], nil
		}
	case string:
		if n, isInt := key.(int64); isInt {
			return s.sliceText(x.line, v, [3]*int64{&n, nil, nil}, true)
		}
	}
	return undefined{describe(x)}, nil
}

// describe returns an item as the template has it, for messages.
func describe(x expr) string {
	switch x := x.(type) {
	case name:
		return x.id
	case item:
		if key, ok := x.key.(literal); ok {
			if text, ok := key.v.(string); ok {
				return describe(x.x) + "." + text
			}
			return fmt.Sprintf("%s[%v]", describe(x.x), key.v)
		}
		return "an item of " + describe(x.x)
	}
	return "an attribute"
}

func index(key any, n int) (int, bool) {
	i, ok := key.(int64)
	if i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

func (s *scope) slice(x slice) (any, error) {
	v, err := s.value(x.x)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, b := range x.bounds {
		if b == nil {
			continue
		}
		value, err := s.value(b)
		if err != nil {
			return nil, err
		}
		switch n := value.(type) {
		case int64:
			bounds[i] = &n
		case nil:
		default:
			return nil, &Error{x.line, "the bounds of a slice must be whole numbers, not " + typeName(value)}
		}
	}
	switch v := v.(type) {
	case string:
		return s.sliceText(x.line, v, bounds, false)
	case Text:
		if text, ok := v.slice(bounds); ok {
			return text, nil
		}
		return s.sliceText(x.line, v.String(), bounds, false)
	case []any:
		return sliceOf(v, bounds, x.line)
	}
	return nil, &Error{x.line, typeName(v) + " cannot be sliced"}
}

// slice returns a slice within the head or the tail; ok is false for others.
func (t Text) slice(bounds [3]*int64) (string, bool) {
	from, to := bounds[0], bounds[1]
	switch {
	case bounds[2] != nil:
	case to == nil && from != nil && *from < 0 && -*from <= runes(t.Tail):
		return dropRunes(t.Tail, runes(t.Tail)+*from), true
	case to != nil && *to >= 0 && *to <= runes(t.Head) && (from == nil || *from >= 0):
		start := int64(0)
		if from != nil {
			start = min(*from, *to)
		}
		return dropRunes(keepRunes(t.Head, *to), start), true
	}
	return "", false
}

func runes(s string) int64 { return int64(utf8.RuneCountInString(s)) }

// keepRunes returns the first n characters of s, dropRunes the others.
func keepRunes(s string, n int64) string { return s[:runeOffset(s, n)] }
func dropRunes(s string, n int64) string { return s[runeOffset(s, n):] }

func runeOffset(s string, n int64) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// sliceText returns a slice of a string, or one character of it.
func (s *scope) sliceText(line int, text string, bounds [3]*int64, single bool) (any, error) {
	if err := s.spend(line, 1+len(text)/16); err != nil {
		return nil, err
	}
	n := runes(text)
	if single {
		i, ok := index(*bounds[0], int(n))
		if !ok {
			return undefined{fmt.Sprintf("character %d of a string", *bounds[0])}, nil
		}
		return keepRunes(dropRunes(text, int64(i)), 1), nil
	}
	if bounds[2] == nil || *bounds[2] == 1 {
		from, to, _ := clip(bounds, n)
		if from >= to {
			return "", nil
		}
		return keepRunes(dropRunes(text, from), to-from), nil
	}
	part, err := sliceOf([]rune(text), bounds, line)
	return string(part), err
}

// clip returns the bounds of a slice of n items as Python does.
func clip(bounds [3]*int64, n int64) (from, to, step int64) {
	step = 1
	if bounds[2] != nil {
		step = *bounds[2]
	}
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	from, to = low, high
	if step < 0 {
		from, to = high, low
	}
	for i, p := range []*int64{&from, &to} {
		if bounds[i] == nil {
			continue
		}
		*p = *bounds[i]
		if *p < 0 {
			*p = max(*p+n, low)
		}
		*p = min(max(*p, low), high)
	}
	return from, to, step
}

func sliceOf[T any](list []T, bounds [3]*int64, line int) ([]T, error) {
	from, to, step := clip(bounds, int64(len(list)))
	if step == 0 {
		return nil, &Error{line, "the step of a slice is zero"}
	}
	part := []T{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		part = append(part, list[i])
		if step > int64(len(list)) || -step > int64(len(list)) {
			break
		}
	}
	return part, nil
}

// call calls a method of a string or of a mapping.
func (s *scope) call(x call) (any, error) {
	method, ok := x.x.(item)
	if !ok {
		return nil, &Error{x.line, "a call that is not a method is not supported"}
	}
	v, err := s.value(method.x)
	if err != nil {
		return nil, err
	}
	args, err := s.values(x.args)
	if err != nil {
		return nil, err
	}
	key, _ := method.key.(literal)
	id, _ := key.v.(string)
	switch v := v.(type) {
	case string:
		return s.textMethod(x.line, v, id, args)
	case Text:
		return s.textMethod(x.line, v.String(), id, args)
	case map[string]any:
		return mapMethod(x.line, v, id, args)
	}
	return nil, &Error{x.line, fmt.Sprintf("%s has no method %.40s here", typeName(v), id)}
}

func (s *scope) textMethod(line int, text, id string, args []any) (any, error) {
	if err := s.spend(line, 1+len(text)/16); err != nil {
		return nil, err
	}
	var arg [2]string
	for i, a := range args {
		part, ok := a.(string)
		if !ok || i == len(arg) {
			return nil, &Error{line, fmt.Sprintf("the arguments of %.40s are not supported", id)}
		}
		arg[i] = part
	}
	cut := isSpace
	if len(args) == 1 {
		cut = func(r rune) bool { return strings.ContainsRune(arg[0], r) }
	}
	n := len(args)
	switch {
	case id == "upper" && n == 0:
		return strings.ToUpper(text), nil
	case id == "lower" && n == 0:
		return strings.ToLower(text), nil
	case id == "strip" && n < 2:
		return strings.TrimFunc(text, cut), nil
	case id == "lstrip" && n < 2:
		return strings.TrimLeftFunc(text, cut), nil
	case id == "rstrip" && n < 2:
		return strings.TrimRightFunc(text, cut), nil
	case id == "startswith" && n == 1:
		return strings.HasPrefix(text, arg[0]), nil
	case id == "endswith" && n == 1:
		return strings.HasSuffix(text, arg[0]), nil
	case id == "replace" && n == 2:
		return s.replace(line, text, arg[0], arg[1])
	case id == "split" && n == 0:
		return normalize(strings.FieldsFunc(text, isSpace)), nil
	case id == "split" && n == 1 && arg[0] != "":
		return normalize(strings.Split(text, arg[0])), nil
	case id == "splitlines" && n == 0:
		return splitLines(text), nil
	}
	return nil, &Error{line, fmt.Sprintf("the method %.40s of strings is not supported with %d arguments", id, n)}
}

// splitLines splits like Python's splitlines.
func splitLines(text string) []any {
	lines := []any{}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text != "" {
		i := strings.IndexAny(text, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		if i < 0 {
			return append(lines, text)
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		lines, text = append(lines, text[:i]), text[i+size:]
	}
	return lines
}

func (s *scope) replace(line int, text, old, with string) (any, error) {
	if n := strings.Count(text, old); n > 0 && len(text)+n*len(with) > maxOutput {
		return nil, &Error{line, "the result of replace is too long"}
	}
	return s.text(line, strings.ReplaceAll(text, old, with))
}

func mapMethod(line int, m map[string]any, id string, args []any) (any, error) {
	switch {
	case id == "get" && len(args) > 0 && len(args) < 3:
		if v, ok := m[toString(args[0])]; ok {
			return v, nil
		}
		if len(args) == 2 {
			return args[1], nil
		}
		return nil, nil //nolint:nilnil // Python's None
	case id == "items" && len(args) == 0:
		pairs := []any{}
		for _, key := range sortedKeys(m) {
			pairs = append(pairs, []any{key, m[key]})
		}
		return pairs, nil
	}
	return nil, &Error{line, fmt.Sprintf("the method %.40s of mappings is not supported with %d arguments", id, len(args))}
}

var testNames = []string{"defined", "undefined", "none", "string", "number", "boolean", "mapping", "sequence"}

func (s *scope) test(x test) (any, error) {
	v, _, err := s.eval(x.x)
	if err != nil {
		return nil, err
	}
	_, isUndefined := v.(undefined)
	var yes bool
	switch x.name {
	case "defined":
		yes = !isUndefined
	case "undefined":
		yes = isUndefined
	default:
		if v, err = s.value(x.x); err != nil {
			return nil, err
		}
		switch x.name {
		case "none":
			yes = v == nil
		case "number":
			_, _, yes = toNumber(v)
		case "boolean":
			_, yes = v.(bool)
		case "string":
			yes = isText(v)
		case "mapping":
			_, yes = v.(map[string]any)
		case "sequence":
			_, yes = elements(v)
		}
	}
	return yes != x.not, nil
}
