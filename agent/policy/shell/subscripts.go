package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// evaluation is what a command has of arithmetic, in which bash expands the
// subscripts of arrays, and of texts that would be such subscripts and hold
// commands: a variable may bring one to the other.
type evaluation struct {
	evaluated bool
	hidden    bool
}

// hidesCommand matches a subscript that runs a command when it is expanded.
var hidesCommand = regexp.MustCompile("[A-Za-z_][A-Za-z0-9_]*\\[([^\\[\\]]|\\[[^\\[\\]]*\\])*(\\$\\(|`)")

// surveySubscripts looks at one node of a script. Here-documents are left out:
// most are texts for files.
func (r *reader) surveySubscripts(n syntax.Node) {
	found := &r.work.subscripts
	switch n := n.(type) {
	case *syntax.Redirect:
		r.documents[n.Hdoc] = true
	case *syntax.Word:
		if !r.documents[n] {
			found.hidden = found.hidden || hidesCommand.MatchString(literal(n.Parts))
		}
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		r.evaluates(n)
	case *syntax.ParamExp:
		if n.Index != nil {
			r.evaluates(n.Index)
		}
		if n.Slice != nil {
			r.evaluates(n)
		}
		r.work.subscripts.evaluated = r.work.subscripts.evaluated || n.Excl
	case *syntax.Assign:
		if n.Index != nil {
			r.evaluates(n.Index)
		}
	case *syntax.DeclClause:
		found.evaluated = found.evaluated || n.Variant.Value != "export"
	case *syntax.UnaryTest:
		found.evaluated = found.evaluated || n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
	case *syntax.BinaryTest:
		found.evaluated = found.evaluated || slices.Contains(numeric, n.Op)
	}
}

// numeric are the tests of [[ that compare the values of expressions.
var numeric = []syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}

// evaluates notes an expression, in which any quoted command is one too many.
func (r *reader) evaluates(n syntax.Node) {
	r.work.subscripts.evaluated = true
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			text := literal(w.Parts)
			r.work.subscripts.hidden = r.work.subscripts.hidden || strings.Contains(text, "$(") || strings.Contains(text, "`")
		}
		return true
	})
}

// literal is the text of a word, where what is expanded is left out.
func literal(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, "\\", ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literal(p.Parts))
		}
	}
	return b.String()
}
