package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of an expression's value, as far as it is known.
type Kind int

// Kinds of values.
const (
	Unknown Kind = iota
	Int
	Float
	String
	Bool
	List
)

// GoExpr is an expression of text/template.
type GoExpr struct {
	Text string
	Kind Kind
}

// expr translates an expression. line is that of its tag.
func (tr *translator) expr(x expr, line int) (GoExpr, error) {
	switch x := x.(type) {
	case literal:
		return literalExpr(x, line)
	case name, item:
		return tr.variable(x, line)
	case unary:
		return tr.unary(x)
	case binary:
		return tr.binary(x)
	case compare:
		return tr.compare(x)
	case choice:
		return GoExpr{}, &Error{line, "a choice within an expression"}
	case list:
		return tr.function(List, "list", line, x.items...)
	case slice:
		return tr.slice(x)
	case filter:
		return tr.filter(x)
	case test:
		return tr.test(x)
	}
	return GoExpr{}, &Error{line, "a mapping or a call"}
}

func literalExpr(x literal, line int) (GoExpr, error) {
	switch v := x.v.(type) {
	case bool:
		return GoExpr{strconv.FormatBool(v), Bool}, nil
	case int64:
		return GoExpr{strconv.FormatInt(v, 10), Int}, nil
	case float64:
		return GoExpr{floatText(v), Float}, nil
	case string:
		return GoExpr{strconv.Quote(v), String}, nil
	}
	return GoExpr{}, &Error{line, "none has no counterpart"}
}

func floatText(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.ContainsRune(text, '.') {
		text += ".0"
	}
	return text
}

// function translates arguments and returns a call of a function with them.
func (tr *translator) function(kind Kind, function string, line int, args ...expr) (GoExpr, error) {
	text := function
	for _, a := range args {
		e, err := tr.expr(a, line)
		if err != nil {
			return e, err
		}
		text += " " + e.arg()
	}
	return GoExpr{text, kind}, nil
}

// arg returns the expression as an argument of a function.
func (e GoExpr) arg() string {
	if strings.ContainsRune(e.Text, ' ') && e.Text[0] != '"' {
		return "(" + e.Text + ")"
	}
	return e.Text
}

// path returns a variable or an attribute as GoNames takes it; "" for other expressions.
func path(x expr) string {
	switch x := x.(type) {
	case name:
		return x.id
	case item:
		key, _ := x.key.(literal)
		id, isText := key.v.(string)
		if of := path(x.x); of != "" && isText {
			return of + "." + id
		}
	}
	return ""
}

func (tr *translator) variable(x expr, line int) (GoExpr, error) {
	p := path(x)
	first, rest, _ := strings.Cut(p, ".")
	if local, ok := tr.locals[first]; ok {
		if rest == "" {
			return local, nil
		}
		return GoExpr{local.Text + "." + rest, Unknown}, nil
	}
	if e, ok := tr.names(p, tr.root); ok && p != "" {
		return e, nil
	}
	if p == "" {
		p = describe(x)
	}
	return GoExpr{}, &Error{line, p + " is no variable of Go templates"}
}

func (tr *translator) unary(x unary) (GoExpr, error) {
	e, err := tr.expr(x.x, x.line)
	switch {
	case err != nil:
		return e, err
	case x.op == "not":
		return GoExpr{"not " + e.arg(), Bool}, nil
	case x.op == "-" && (e.Kind == Int || e.Kind == Float) && !strings.ContainsAny(e.Text, ".$ "):
		return GoExpr{"-" + e.Text, e.Kind}, nil
	}
	return e, &Error{x.line, "a sign"}
}

// logic translates and and or. It leaves out operands that are always true or false.
func (tr *translator) logic(x binary) (GoExpr, error) {
	a, err := tr.expr(x.x, x.line)
	if err != nil {
		return a, err
	}
	b, err := tr.expr(x.y, x.line)
	if err != nil {
		return b, err
	}
	neutral, absorbing := "true", "false"
	if x.op == "or" {
		neutral, absorbing = absorbing, neutral
	}
	switch a.Text {
	case neutral:
		return b, nil
	case absorbing:
		return a, nil
	}
	kind := Unknown
	if a.Kind == b.Kind {
		kind = a.Kind
	}
	return GoExpr{x.op + " " + a.arg() + " " + b.arg(), kind}, nil
}

func (tr *translator) binary(x binary) (GoExpr, error) {
	if x.op == "and" || x.op == "or" {
		return tr.logic(x)
	}
	a, err := tr.expr(x.x, x.line)
	if err != nil {
		return a, err
	}
	b, err := tr.expr(x.y, x.line)
	if err != nil {
		return b, err
	}
	switch {
	case x.op == "~", x.op == "+" && a.Kind == String && b.Kind == String:
		return GoExpr{"printf \"%v%v\" " + a.arg() + " " + b.arg(), String}, nil
	case a.Kind == Int && b.Kind == Int:
		if function, ok := map[string]string{"+": "add", "-": "sub", "*": "mul", "//": "div", "%": "mod"}[x.op]; ok {
			return GoExpr{function + " " + a.arg() + " " + b.arg(), Int}, nil
		}
	case (a.Kind == Int || a.Kind == Float) && (b.Kind == Int || b.Kind == Float):
	default:
		return a, &Error{x.line, "the operator " + x.op + " with these values"}
	}
	function, ok := map[string]string{"+": "addf", "-": "subf", "*": "mulf", "/": "divf"}[x.op]
	if !ok {
		return a, &Error{x.line, "the operator " + x.op}
	}
	return GoExpr{function + " " + a.arg() + " " + b.arg(), Float}, nil
}

var goComparisons = map[string]string{"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

func (tr *translator) compare(x compare) (GoExpr, error) {
	var all []string
	operands := append([]expr{x.x}, x.rest...)
	for i, op := range x.ops {
		var e GoExpr
		var err error
		if op == "in" || op == "not in" {
			e, err = tr.contains(operands[i], operands[i+1], op, x.line)
		} else {
			e, err = tr.comparison(operands[i], operands[i+1], op, x.line)
		}
		if err != nil {
			return e, err
		}
		all = append(all, e.Text)
	}
	if len(all) == 1 {
		return GoExpr{all[0], Bool}, nil
	}
	return GoExpr{"and (" + strings.Join(all, ") (") + ")", Bool}, nil
}

// comparison translates x op y. Go compares values of the same kind only.
func (tr *translator) comparison(x, y expr, op string, line int) (GoExpr, error) {
	a, err := tr.expr(x, line)
	if err != nil {
		return a, err
	}
	b, err := tr.expr(y, line)
	if err != nil {
		return b, err
	}
	for _, pair := range []struct{ e, other *GoExpr }{{&a, &b}, {&b, &a}} {
		if pair.e.Kind == Int && pair.other.Kind == Float {
			if n, err := strconv.ParseInt(pair.e.Text, 10, 64); err == nil {
				*pair.e = GoExpr{floatText(float64(n)), Float}
			} else {
				*pair.e = GoExpr{"float64 " + pair.e.arg(), Float}
			}
		}
	}
	if a.Kind != b.Kind && a.Kind != Unknown && b.Kind != Unknown {
		return a, &Error{line, "a comparison of different types"}
	}
	return GoExpr{goComparisons[op] + " " + a.arg() + " " + b.arg(), Bool}, nil
}

func (tr *translator) contains(x, y expr, op string, line int) (e GoExpr, err error) {
	items, isList := y.(list)
	if isList && len(items.items) > 0 {
		e, err = tr.function(Bool, "eq", line, append([]expr{x}, items.items...)...)
	} else {
		var within GoExpr
		if within, err = tr.expr(y, line); err == nil && within.Kind == String {
			e, err = tr.function(Bool, "contains", line, x, y)
		} else if err == nil {
			e, err = tr.function(Bool, "has", line, x, y)
		}
	}
	if op == "not in" {
		e.Text = "not " + e.arg()
	}
	return e, err
}

func (tr *translator) slice(x slice) (GoExpr, error) {
	bounds := [2]string{}
	for i := range bounds {
		if x.bounds[i] == nil {
			continue
		}
		e, err := tr.expr(x.bounds[i], x.line)
		if _, isNumber := strconv.Atoi(e.Text); err != nil || isNumber != nil {
			return e, &Error{x.line, "a slice whose bounds are not numbers"}
		}
		bounds[i] = e.Text
	}
	p := fmt.Sprintf("%s[%s:%s]", path(x.x), bounds[0], bounds[1])
	if e, ok := tr.names(p, tr.root); ok && x.bounds[2] == nil {
		return e, nil
	}
	return GoExpr{}, &Error{x.line, "a slice of " + describe(x.x)}
}

// goFunctions are the functions for filters without arguments.
var goFunctions = map[string]GoExpr{
	"tojson": {"toJson", String}, "upper": {"upper", String}, "lower": {"lower", String}, "trim": {"trim", String},
	"string": {"toString", String}, "float": {"float64", Float},
}

func (tr *translator) filter(x filter) (GoExpr, error) {
	if x.name == "length" || x.name == "count" {
		if e, ok := tr.names(path(x.x)+"|length", tr.root); ok {
			return e, nil
		}
	}
	e, err := tr.expr(x.x, x.line)
	if err != nil {
		return e, err
	}
	of, positional := x.x, !slices.ContainsFunc(x.names, func(id string) bool { return id != "" })
	function, simple := goFunctions[x.name]
	switch {
	case x.name == "safe", x.name == "default" || x.name == "d": // variables exist
		if len(x.args) < 2 {
			return e, nil
		}
	case len(x.args) == 0 && simple:
		return tr.function(function.Kind, function.Text, x.line, of)
	case (x.name == "length" || x.name == "count") && e.Kind == List:
		return GoExpr{"len " + e.arg(), Int}, nil
	case x.name == "int" && len(x.args) == 0:
		return tr.wholeNumber(of, e), nil
	case x.name == "join" && len(x.args) == 1 && positional:
		return tr.function(String, "join", x.line, x.args[0], of)
	case x.name == "replace" && len(x.args) == 2 && positional:
		return tr.function(String, "replace", x.line, x.args[0], x.args[1], of)
	}
	return e, &Error{x.line, "the filter " + x.name + " with these values"}
}

// wholeNumber translates the filter int. A quotient of whole numbers is divided as such.
func (tr *translator) wholeNumber(of expr, e GoExpr) GoExpr {
	if b, ok := of.(binary); ok && b.op == "/" {
		b.op = "//"
		if quotient, err := tr.binary(b); err == nil && quotient.Kind == Int {
			return quotient
		}
	}
	if e.Kind == Int {
		return e
	}
	return GoExpr{"int " + e.arg(), Int}
}

// test translates "is defined": the variables of Go templates always are.
func (tr *translator) test(x test) (GoExpr, error) {
	if x.name != "defined" && x.name != "undefined" {
		return GoExpr{}, &Error{x.line, "the test " + x.name}
	}
	_, err := tr.expr(x.x, x.line)
	if p := path(x.x); err != nil && (p == "" || strings.ContainsRune(p, '.')) {
		return GoExpr{}, err
	}
	return GoExpr{strconv.FormatBool((err == nil) == ((x.name == "defined") != x.not)), Bool}, nil
}
