package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Nodes of a template.
type (
	node any // data, output, branch, loop, set
	data struct {
		text string
		line int
	}
	output struct {
		x    expr
		line int
	}
	branch struct {
		cases []branchCase
		line  int
	}
	branchCase struct {
		cond expr // nil for else
		body []node
	}
	loop struct {
		targets     []string
		over, cond  expr
		body, empty []node
		line        int
	}
	// set assigns x, or the rendered body if x is nil.
	set struct {
		target string
		x      expr
		body   []node
		line   int
	}
)

// Expressions.
type (
	expr    any
	literal struct{ v any }
	name    struct {
		id   string
		line int
	}
	list struct{ items []expr }
	dict struct{ keys, values []expr }
	// unary is not, - or +.
	unary struct {
		op   string
		x    expr
		line int
	}
	// binary is and, or, or an operator of arithmetic.
	binary struct {
		op   string
		x, y expr
		line int
	}
	// compare is a chain of comparisons, as in 1 < x < 3.
	compare struct {
		x    expr
		ops  []string
		rest []expr
		line int
	}
	choice struct{ cond, yes, no expr }
	// item is x.key or x[key].
	item struct {
		x, key expr
		line   int
	}
	slice struct {
		x      expr
		bounds [3]expr
		line   int
	}
	call struct {
		x    expr
		args []expr
		line int
	}
	filter struct {
		x     expr
		name  string
		args  []expr
		names []string // of the arguments; empty for positional ones
		line  int
	}
	test struct {
		x    expr
		name string
		not  bool
		args []expr
		line int
	}
)

// Parse parses a template. The error is an *Error.
func Parse(text string) (t *Template, err error) {
	parts, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{parts: parts}
	nodes, end, err := p.body()
	if err != nil {
		return nil, err
	}
	if end != "" {
		return nil, &Error{p.line(), fmt.Sprintf("%s has no beginning", end)}
	}
	return &Template{nodes}, nil
}

type parser struct {
	parts  []part
	pos    int // of the next part
	tokens []token
	depth  int
}

// line returns the line of the last part.
func (p *parser) line() int { return p.parts[p.pos-1].line }

func (p *parser) errorf(format string, args ...any) error {
	line := p.line()
	if len(p.tokens) > 0 {
		line = p.tokens[0].line
	}
	return &Error{line, fmt.Sprintf(format, args...)}
}

// body parses up to a statement that ends or divides a block, whose first name it
// returns; its other tokens are next. It returns "" at the end of the template.
func (p *parser) body() (nodes []node, end string, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, "", p.errorf("too many nested statements")
	}
	defer func() { p.depth-- }()
	for p.pos < len(p.parts) {
		next := p.parts[p.pos]
		p.pos++
		if next.tag == "" {
			nodes = append(nodes, data{next.text, next.line})
			continue
		}
		p.tokens = next.tokens
		if next.tag == "{{" {
			x, err := p.expression()
			if err == nil {
				err = p.expectEnd()
			}
			if err != nil {
				return nil, "", err
			}
			nodes = append(nodes, output{x, next.line})
			continue
		}
		n, end, err := p.statement(next.line)
		if err != nil || end != "" {
			return nodes, end, err
		}
		nodes = append(nodes, n)
	}
	return nodes, "", nil
}

var blockEnds = []string{"elif", "else", "endif", "endfor", "endset", "endraw"}

func (p *parser) statement(line int) (n node, end string, err error) {
	word := p.next()
	switch {
	case word.kind == tokenName && slices.Contains(blockEnds, word.text):
		return nil, word.text, nil
	case word.text == "if":
		n, err = p.parseIf(line)
	case word.text == "for":
		n, err = p.parseFor(line)
	case word.text == "set":
		n, err = p.parseSet(line)
	default:
		err = &Error{line, fmt.Sprintf("the statement %v is not supported; if, for, set and raw are", word)}
	}
	return n, "", err
}

func (p *parser) parseIf(line int) (node, error) {
	b := branch{line: line}
	word := "if"
	for {
		var c branchCase
		var err error
		if word != "else" {
			if c.cond, err = p.expression(); err != nil {
				return nil, err
			}
		}
		if err := p.expectEnd(); err != nil {
			return nil, err
		}
		if c.body, word, err = p.blockBody("if", line, "elif", "else", "endif"); err != nil {
			return nil, err
		}
		if c.cond == nil && word != "endif" {
			return nil, p.errorf("%s follows else", word)
		}
		b.cases = append(b.cases, c)
		if word == "endif" {
			return b, p.expectEnd()
		}
	}
}

// blockBody parses the body of a block up to one of ends.
func (p *parser) blockBody(block string, line int, ends ...string) ([]node, string, error) {
	nodes, end, err := p.body()
	if err == nil && end == "" {
		err = &Error{line, fmt.Sprintf("%s has no %s", block, ends[len(ends)-1])}
	}
	if err == nil && !slices.Contains(ends, end) {
		err = p.errorf("unexpected %s; %s is open", end, block)
	}
	return nodes, end, err
}

func (p *parser) parseFor(line int) (node, error) {
	n := loop{line: line}
	for {
		target := p.next()
		if target.kind != tokenName {
			return nil, p.errorf("unexpected %v; for needs a variable", target)
		}
		n.targets = append(n.targets, target.text)
		if !p.take(",") {
			break
		}
	}
	if !p.take("in") {
		return nil, p.errorf("unexpected %v; for VARIABLE needs in", p.peek())
	}
	var err error
	if n.over, err = p.or(); err != nil {
		return nil, err
	}
	if p.take("if") {
		if n.cond, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if err := p.expectEnd(); err != nil {
		return nil, err
	}
	var end string
	if n.body, end, err = p.blockBody("for", line, "else", "endfor"); err != nil {
		return nil, err
	}
	if end == "else" {
		if err := p.expectEnd(); err != nil {
			return nil, err
		}
		if n.empty, _, err = p.blockBody("for", line, "endfor"); err != nil {
			return nil, err
		}
	}
	return n, p.expectEnd()
}

func (p *parser) parseSet(line int) (node, error) {
	target := p.next()
	if target.kind != tokenName {
		return nil, p.errorf("unexpected %v; set needs a variable", target)
	}
	n := set{target: target.text, line: line}
	var err error
	if p.take("=") {
		if n.x, err = p.expression(); err != nil {
			return nil, err
		}
		return n, p.expectEnd()
	}
	if err := p.expectEnd(); err != nil {
		return nil, err
	}
	if n.body, _, err = p.blockBody("set", line, "endset"); err != nil {
		return nil, err
	}
	return n, p.expectEnd()
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != tokenEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

// take consumes an operator or a keyword, if it is next.
func (p *parser) take(text string) bool {
	if t := p.peek(); t.text != text || t.kind != tokenOp && t.kind != tokenName {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text string) error {
	if !p.take(text) {
		return p.errorf("unexpected %v; %q was expected", p.peek(), text)
	}
	return nil
}

func (p *parser) expectEnd() error {
	if t := p.peek(); t.kind != tokenEnd {
		return p.errorf("unexpected %v", t)
	}
	return nil
}

// expression parses x if cond else y, and all that binds more tightly.
func (p *parser) expression() (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("too many nested expressions")
	}
	defer func() { p.depth-- }()
	x, err := p.or()
	for err == nil && p.take("if") {
		c := choice{yes: x}
		if c.cond, err = p.or(); err == nil && p.take("else") {
			c.no, err = p.expression()
		}
		x = c
	}
	return x, err
}

func (p *parser) or() (expr, error) { return p.infix(p.and, "or") }

func (p *parser) and() (expr, error) { return p.infix(p.not, "and") }

// infix parses a chain of left-associative operators.
func (p *parser) infix(operand func() (expr, error), ops ...string) (expr, error) {
	x, err := operand()
	for err == nil {
		t := p.peek()
		if !slices.Contains(ops, t.text) || !p.take(t.text) {
			break
		}
		var y expr
		y, err = operand()
		x = binary{t.text, x, y, t.line}
	}
	return x, err
}

func (p *parser) not() (expr, error) {
	line := p.peek().line
	if p.take("not") {
		if p.depth++; p.depth > maxDepth {
			return nil, p.errorf("too many nested expressions")
		}
		defer func() { p.depth-- }()
		x, err := p.not()
		return unary{"not", x, line}, err
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in"}

func (p *parser) compare() (expr, error) {
	x, err := p.sum()
	c := compare{x: x}
	for err == nil {
		t := p.peek()
		op := t.text
		switch {
		case slices.Contains(comparisons, op) && p.take(op):
		case op == "not" && len(p.tokens) > 1 && p.tokens[1].text == "in" && p.take("not") && p.take("in"):
			op = "not in"
		default:
			if c.ops == nil {
				return x, nil
			}
			return c, nil
		}
		var y expr
		y, err = p.sum()
		c.ops, c.rest, c.line = append(c.ops, op), append(c.rest, y), t.line
	}
	return nil, err
}

func (p *parser) sum() (expr, error)     { return p.infix(p.concat, "+", "-") }
func (p *parser) concat() (expr, error)  { return p.infix(p.product, "~") }
func (p *parser) product() (expr, error) { return p.infix(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) {
	return p.infix(func() (expr, error) { return p.unary(true) }, "**")
}

// unary parses a signed operand. Filters apply to the result with the sign.
func (p *parser) unary(filters bool) (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("too many nested expressions")
	}
	defer func() { p.depth-- }()
	var x expr
	var err error
	if t := p.peek(); p.take("-") || p.take("+") {
		x, err = p.unary(false)
		x = unary{t.text, x, t.line}
	} else {
		x, err = p.primary()
	}
	if err == nil {
		x, err = p.postfix(x)
	}
	if err == nil && filters {
		x, err = p.filters(x)
	}
	return x, err
}

func (p *parser) primary() (expr, error) {
	t := p.next()
	switch t.kind {
	case tokenString:
		text := t.text
		for p.peek().kind == tokenString {
			text += p.next().text
		}
		return literal{text}, nil
	case tokenInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, p.errorf("the number %.40s is too large", t.text)
		}
		return literal{n}, nil
	case tokenFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.errorf("the number %.40s is too large", t.text)
		}
		return literal{f}, nil
	case tokenName:
		switch strings.ToLower(t.text[:1]) + t.text[1:] {
		case "true":
			return literal{true}, nil
		case "false":
			return literal{false}, nil
		case "none":
			return literal{nil}, nil
		}
		return name{t.text, t.line}, nil
	case tokenOp:
		switch t.text {
		case "(":
			items, comma, err := p.items(")")
			if err == nil && len(items) == 1 && !comma {
				return items[0], nil
			}
			return list{items}, err
		case "[":
			items, _, err := p.items("]")
			return list{items}, err
		case "{":
			return p.dict()
		}
	}
	return nil, p.errorf("unexpected %v", t)
}

// items parses expressions up to closing; comma reports a comma after one.
func (p *parser) items(closing string) (items []expr, comma bool, err error) {
	for !p.take(closing) {
		if len(items) > 0 && !comma {
			return nil, false, p.errorf("unexpected %v; a comma or %q was expected", p.peek(), closing)
		}
		x, err := p.expression()
		if err != nil {
			return nil, false, err
		}
		items = append(items, x)
		comma = p.take(",")
	}
	return items, comma, nil
}

func (p *parser) dict() (expr, error) {
	var d dict
	for !p.take("}") {
		if len(d.keys) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.take("}") {
				break
			}
		}
		key, err := p.expression()
		if err == nil {
			err = p.expect(":")
		}
		if err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
	}
	return d, nil
}

// postfix parses attributes, items, slices and calls.
func (p *parser) postfix(x expr) (expr, error) {
	for {
		t := p.peek()
		switch {
		case p.take("."):
			key := p.next()
			switch key.kind {
			case tokenName:
				x = item{x, literal{key.text}, t.line}
			case tokenInt:
				n, _ := strconv.ParseInt(key.text, 10, 64) // digits; a number that is too large is out of range anyway
				x = item{x, literal{n}, t.line}
			default:
				return nil, p.errorf("unexpected %v after a dot", key)
			}
		case p.take("["):
			var err error
			if x, err = p.subscript(x, t.line); err != nil {
				return nil, err
			}
		case t.kind == tokenOp && p.take("("):
			args, names, err := p.arguments()
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(names, func(n string) bool { return n != "" }) {
				return nil, p.errorf("a method takes no named arguments")
			}
			x = call{x, args, t.line}
		default:
			return x, nil
		}
	}
}

// subscript parses an index or a slice after its bracket.
func (p *parser) subscript(x expr, line int) (expr, error) {
	s := slice{x: x, line: line}
	for i := range s.bounds {
		if t := p.peek().text; p.peek().kind != tokenOp || t != ":" && t != "]" {
			y, err := p.expression()
			if err != nil {
				return nil, err
			}
			s.bounds[i] = y
		}
		if p.take("]") {
			if i == 0 {
				if s.bounds[0] == nil {
					return nil, p.errorf("[] is empty")
				}
				return item{x, s.bounds[0], line}, nil
			}
			return s, nil
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
	}
	return nil, p.errorf("a slice has at most three parts")
}

// arguments parses the arguments of a call after its parenthesis.
func (p *parser) arguments() (args []expr, names []string, err error) {
	for !p.take(")") {
		if len(args) > 0 {
			if err := p.expect(","); err != nil {
				return nil, nil, err
			}
			if p.take(")") {
				break
			}
		}
		id := ""
		if len(p.tokens) > 1 && p.tokens[0].kind == tokenName && p.tokens[1].text == "=" && p.tokens[1].kind == tokenOp {
			id = p.next().text
			p.next()
		}
		x, err := p.expression()
		if err != nil {
			return nil, nil, err
		}
		args, names = append(args, x), append(names, id)
	}
	return args, names, nil
}

// filters parses filters and tests.
func (p *parser) filters(x expr) (expr, error) {
	for {
		t := p.peek()
		switch {
		case p.take("|"):
			id := p.next()
			f := filter{x: x, name: id.text, line: t.line}
			if id.kind != tokenName {
				return nil, p.errorf("unexpected %v; a filter was expected", id)
			}
			if !slices.Contains(filterNames, id.text) {
				return nil, p.errorf("the filter %.40q is not supported; these are: %s", id.text, strings.Join(filterNames, " "))
			}
			if p.peek().kind == tokenOp && p.take("(") {
				var err error
				if f.args, f.names, err = p.arguments(); err != nil {
					return nil, err
				}
			}
			x = f
		case t.kind == tokenName && p.take("is"):
			n := test{x: x, line: t.line, not: p.take("not")}
			id := p.next()
			if n.name = id.text; id.kind != tokenName || !slices.Contains(testNames, id.text) {
				return nil, p.errorf("the test %v is not supported; these are: %s", id, strings.Join(testNames, " "))
			}
			x = n
		default:
			return x, nil
		}
	}
}
