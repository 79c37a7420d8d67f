package jinja

import (
	"fmt"
	"maps"
	"strings"
)

// GoNames returns the expressions of Go templates for the variables and attributes of a
// template: "task", "output.returncode". It is also asked for the forms that need an
// expression of their own: "output.output|length" and "output.output[:5000]". root is
// what an expression must begin with to name a variable: "." or, within a loop, "$.".
type GoNames func(path, root string) (GoExpr, bool)

// Go translates the template to one of text/template with the functions of sprig. The
// error is an *Error for what it cannot translate. The translation is not exact in all
// cases: callers compare what both templates render.
func (t *Template) Go(names GoNames) (string, error) {
	tr := &translator{names: names, root: ".", locals: map[string]GoExpr{}}
	if err := tr.nodes(t.nodes); err != nil {
		return "", err
	}
	return tr.layout(), nil
}

// translator is the state of a translation.
type translator struct {
	names  GoNames
	root   string
	locals map[string]GoExpr // variables that the template assigns, in the current block
	parts  []goPart
}

// goPart is text, or a tag without its braces.
type goPart struct {
	text    string
	isTag   bool
	isBlock bool // the tag is no output: white space around it may be trimmed
}

func (tr *translator) tag(isBlock bool, text string) {
	tr.parts = append(tr.parts, goPart{text, true, isBlock})
}

// block translates nodes in a block of their own: what they assign ends with it.
func (tr *translator) block(nodes []node) error {
	outer := tr.locals
	tr.locals = maps.Clone(outer)
	defer func() { tr.locals = outer }()
	return tr.nodes(nodes)
}

func (tr *translator) nodes(nodes []node) error {
	for _, n := range nodes {
		var err error
		switch n := n.(type) {
		case data:
			tr.parts = append(tr.parts, goPart{text: n.text})
		case output:
			err = tr.output(n)
		case branch:
			err = tr.branch(n)
		case loop:
			err = tr.loop(n)
		case set:
			err = tr.set(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tr *translator) output(n output) error {
	if c, ok := n.x.(choice); ok { // {{ a if b else c }}
		b := branch{cases: []branchCase{{c.cond, []node{output{c.yes, n.line}}}}, line: n.line}
		if c.no != nil {
			b.cases = append(b.cases, branchCase{nil, []node{output{c.no, n.line}}})
		}
		return tr.branch(b)
	}
	if l, ok := n.x.(literal); ok {
		tr.parts = append(tr.parts, goPart{text: toString(l.v)})
		return nil
	}
	e, err := tr.expr(n.x, n.line)
	if err != nil {
		return err
	}
	if e.Kind == Bool || e.Kind == List {
		return &Error{n.line, "Go writes this value in another way"}
	}
	tr.tag(false, e.Text)
	return nil
}

func (tr *translator) branch(b branch) error {
	word := "if "
	for _, c := range b.cases {
		if c.cond == nil {
			tr.tag(true, "else")
		} else {
			cond, err := tr.expr(c.cond, b.line)
			if err != nil {
				return err
			}
			tr.tag(true, word+cond.Text)
			word = "else if "
		}
		if err := tr.block(c.body); err != nil {
			return err
		}
	}
	tr.tag(true, "end")
	return nil
}

func (tr *translator) loop(n loop) error {
	over, err := tr.expr(n.over, n.line)
	if err != nil {
		return err
	}
	if len(n.targets) > 1 || n.cond != nil {
		return &Error{n.line, "a loop with a condition or several variables"}
	}
	outer := *tr
	defer func() { tr.root, tr.locals = outer.root, outer.locals }()
	tr.root, tr.locals = "$.", maps.Clone(outer.locals)
	item := "$" + n.targets[0]
	tr.locals[n.targets[0]] = GoExpr{item, Unknown}
	tr.tag(true, "range "+item+" := "+over.Text)
	if err := tr.block(n.body); err != nil {
		return err
	}
	if len(n.empty) > 0 {
		tr.tag(true, "else")
		if err := tr.block(n.empty); err != nil {
			return err
		}
	}
	tr.tag(true, "end")
	return nil
}

func (tr *translator) set(n set) error {
	if _, assigned := tr.locals[n.target]; assigned || n.x == nil {
		return &Error{n.line, fmt.Sprintf("set %s assigns a variable again, or a block", n.target)}
	}
	e, err := tr.expr(n.x, n.line)
	if err != nil {
		return err
	}
	tr.tag(true, "$"+n.target+" := "+e.Text)
	tr.locals[n.target] = GoExpr{"$" + n.target, e.Kind}
	return nil
}

// layout returns the text of the translation. Tags of blocks stand on lines of their own
// where the white space can be trimmed without a change of what is rendered.
func (tr *translator) layout() string {
	var b strings.Builder
	for i, p := range tr.parts {
		if !p.isTag {
			b.WriteString(strings.ReplaceAll(p.text, "{{", `{{"{{"}}`))
			continue
		}
		before, after := "{{", "}}"
		if p.isBlock {
			if i > 0 && !tr.parts[i-1].isTag && breaks(tr.parts[i-1].text) && !endsInSpace(tr.parts[i-1].text) {
				before = "\n{{- "
			}
			if i+1 < len(tr.parts) && !tr.parts[i+1].isTag && breaks(tr.parts[i+1].text) && !startsWithSpace(tr.parts[i+1].text) {
				after = " -}}\n"
			}
		}
		b.WriteString(before + p.text + after)
	}
	return b.String()
}

// breaks reports whether a text is long enough for lines of its own.
func breaks(text string) bool { return strings.ContainsRune(text, '\n') || len(text) > 40 }

func startsWithSpace(text string) bool { return strings.TrimLeft(text, " \t\r\n") != text }
func endsInSpace(text string) bool     { return strings.TrimRight(text, " \t\r\n") != text }
