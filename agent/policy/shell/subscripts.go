package shell

import (
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// commandSubscript matches an array subscript that runs a command when it is
// expanded.
var commandSubscript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[A-Za-z_][A-Za-z0-9_]*\\[([^\\[\\]]|\\[[^\\[\\]]*\\])*(\\$\\(|`)")
})

// hasHiddenCommand reports whether a script contains a quoted text that bash
// may run. Bash runs command substitutions in array subscripts when it
// evaluates arithmetic expressions, and such a subscript may come from a quoted
// text in a variable. Here-documents are skipped, because most of them are the
// contents of files.
func hasHiddenCommand(f *syntax.File) bool {
	found := false
	hereDocs := map[syntax.Node]bool{}
	searchArithmetic := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if w, ok := n.(*syntax.Word); ok {
				text := literalText(w.Parts)
				found = found || strings.Contains(text, "$(") || strings.Contains(text, "`")
			}
			return true
		})
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			hereDocs[n.Hdoc] = true
		case *syntax.Word:
			found = found || !hereDocs[n] && commandSubscript().MatchString(literalText(n.Parts))
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			searchArithmetic(n)
		case *syntax.ParamExp:
			if n.Index != nil || n.Slice != nil {
				searchArithmetic(n)
			}
		case *syntax.Assign:
			if n.Index != nil {
				searchArithmetic(n.Index)
			}
		}
		return !found
	})
	return found
}

// literalText returns the literal text of a word, without expansions and, outside
// single quotes, without backslashes.
func literalText(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, "\\", ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literalText(p.Parts))
		}
	}
	return b.String()
}
