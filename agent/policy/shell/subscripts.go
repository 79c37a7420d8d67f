package shell

import (
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// commandSubscript matches a subscript of an array that runs a command when it is
// expanded.
var commandSubscript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[A-Za-z_][A-Za-z0-9_]*\\[([^\\[\\]]|\\[[^\\[\\]]*\\])*(\\$\\(|`)")
})

// hidesCommand says that a script has a quoted text that bash may run: it expands
// the subscripts of arrays where it evaluates expressions, and a variable may
// bring a text there from anywhere. Here-documents are left out: most are texts
// for files.
func hidesCommand(f *syntax.File) bool {
	found := false
	documents := map[syntax.Node]bool{}
	evaluated := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if w, ok := n.(*syntax.Word); ok {
				text := literal(w.Parts)
				found = found || strings.Contains(text, "$(") || strings.Contains(text, "`")
			}
			return true
		})
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			documents[n.Hdoc] = true
		case *syntax.Word:
			found = found || !documents[n] && commandSubscript().MatchString(literal(n.Parts))
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			evaluated(n)
		case *syntax.ParamExp:
			if n.Index != nil || n.Slice != nil {
				evaluated(n)
			}
		case *syntax.Assign:
			if n.Index != nil {
				evaluated(n.Index)
			}
		}
		return !found
	})
	return found
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
