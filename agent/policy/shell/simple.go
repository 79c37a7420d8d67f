package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// SimpleCommand returns the words of a text that is one program with its
// arguments and nothing else. ok is false if the text has anything that the shell
// expands or that is not visible: a list, a pipe, a redirection, an assignment, a
// substitution, a variable, a pattern, a backslash, a second line.
func SimpleCommand(text string) (words []string, ok bool) {
	text = strings.Trim(text, " \t\n")
	isHidden := func(r rune) bool {
		return r == '\\' || r != ' ' && r != '\t' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' '
	}
	if len(text) > maxSimple || strings.ContainsFunc(text, isHidden) {
		return nil, false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || len(f.Stmts) != 1 {
		return nil, false
	}
	st := f.Stmts[0]
	call, isCall := st.Cmd.(*syntax.CallExpr)
	if !isCall || st.Negated || st.Background || st.Coprocess || st.Semicolon.IsValid() || len(st.Redirs)+len(call.Assigns) > 0 {
		return nil, false
	}
	for _, w := range call.Args {
		word, isLiteral := literalWord(w)
		if !isLiteral {
			return nil, false
		}
		words = append(words, word)
	}
	return words, len(words) > 0 && words[0] != "" && strings.Trim(words[0], "!") != ""
}

// maxSimple is the maximum length of a simple command, in bytes.
const maxSimple = 4096

// tilde matches a tilde that the shell may expand; that of HEAD~1 it does not.
var tilde = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[=:])~`) })

// literalWord returns the value of a word that the shell does not expand.
func literalWord(w *syntax.Word) (word string, ok bool) {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[]{}$`") || tilde().MatchString(p.Value) {
				return "", false
			}
			word += p.Value
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			word += p.Value
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, isLit := inner.(*syntax.Lit)
				if !isLit || p.Dollar || strings.ContainsAny(lit.Value, "$`") {
					return "", false
				}
				word += lit.Value
			}
		default:
			return "", false
		}
	}
	return word, true
}

var (
	// targetPrograms are the programs whose first argument names a task of the
	// project, such as a target of make.
	targetPrograms = []string{"make", "gmake", "just", "rake", "ninja", "tox", "nox", "task"}
	// interpreters are the programs that run a script or, with -m, a module.
	interpreters = []string{"python", "pypy", "coverage", "node", "nodejs", "deno", "ruby", "perl", "php", "lua", "Rscript", "java", "bash", "sh", "dash"}
)

// CommandPrefix returns the first words of a simple command, those that say what
// it does: the program, and its subcommand, script, module or target. It returns
// nil if they do not say it, as in "python -c" or "git -C dir", and for programs
// that remove files or that change the shell.
func CommandPrefix(words []string) []string {
	key := tableName(words[0])
	spec := programs()[key]
	isName := func(i int) bool { return i < len(words) && words[i] != "" && words[i][0] != '-' }
	n := 1
	switch {
	case strings.Contains(words[0], "/"): // a script of the folder
	case slices.Contains(removers, key), slices.Contains([]string{"source", ".", "cd", "export", "set", "dd"}, key):
		return nil
	case spec.has("subcommands"):
		if n = 2; isName(2) && (words[1] == "run" || isTwoWords(key+" "+words[1]+" "+words[2])) {
			n = 3
		}
		if !isName(1) {
			return nil
		}
	case slices.Contains(interpreters, key):
		if n = 2; len(words) > 2 && words[1] == "-m" && isName(2) {
			n = 3
		} else if !isName(1) {
			return nil
		}
	case slices.Contains(targetPrograms, key) && isName(1):
		n = 2
	}
	return words[:n]
}

// isTwoWords reports whether a line of the table is about a subcommand of two words.
func isTwoWords(key string) bool { _, ok := programs()[key]; return ok }

// QuoteCommand returns a text that SimpleCommand splits into the words. ok is
// false if there is none.
func QuoteCommand(words []string) (text string, ok bool) {
	var quoted []string
	for _, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			return "", false
		}
		quoted = append(quoted, q)
	}
	text = strings.Join(quoted, " ")
	again, ok := SimpleCommand(text)
	return text, ok && slices.Equal(again, words)
}
