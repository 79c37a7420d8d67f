package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// kind is how much of a value is known.
type kind int8

const (
	known kind = iota // the text is the value
	// workspaceName is a number or the name of a file in the workspace, such as
	// the values of f in "for f in *.py" or the output of find.
	workspaceName
	unknown // known only at run time
)

// value is a word after expansion.
type value struct {
	text string
	kind kind
	glob bool // text is a glob pattern
}

func (v value) toWord() Word {
	return Word{Text: shortened(displayText(v.text)), Known: v.kind == known && !v.glob}
}

// isLiteral reports whether the shell passes exactly the text to the program.
func (v value) isLiteral() bool { return v.kind == known && !v.glob }

// placeholder stands for the text of a workspaceName value.
const placeholder = "\x01"

// displayText replaces placeholders by "*" for display.
func displayText(s string) string { return strings.ReplaceAll(s, placeholder, "*") }

// expandWord returns the value of one word, as far as the script determines it.
// Braces that expand to several words are names, or unknown.
func (a *analyzer) expandWord(w *syntax.Word, s *scope) value {
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	syntax.SplitBraces(split)
	isBrace := func(p syntax.WordPart) bool { _, ok := p.(*syntax.BraceExp); return ok }
	v := a.expandParts(w.Parts, s, false)
	if v.kind == unknown || slices.ContainsFunc(split.Parts, isBrace) {
		v = value{text: a.sourceText(w), kind: unknown}
		if m := plainBraces().FindStringSubmatch(v.text); m != nil {
			v = value{text: m[1] + placeholder + m[2], kind: workspaceName}
		}
	}
	return v
}

// plainBraces matches words such as src/{a,b}.py and {1..5}.
var plainBraces = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:\w[\w./-]*)?)\{(?:\w+(?:,\w+)+|\d+\.\.\d+)\}([\w./-]*)$`)
})

// sourceText returns the source text of a node.
func (a *analyzer) sourceText(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(a.text) || from > to {
		return "?"
	}
	return a.text[from:to]
}

func (a *analyzer) expandParts(parts []syntax.WordPart, s *scope, quoted bool) value {
	var out value
	var text strings.Builder
	for i, p := range parts {
		v := a.expandPart(p, s, quoted, i == 0 && !quoted)
		out.kind = max(out.kind, v.kind)
		out.glob = out.glob || v.glob
		if v.kind == workspaceName && strings.HasSuffix(text.String(), "..") {
			out.kind = unknown
		}
		text.WriteString(v.text)
	}
	out.text = text.String()
	return out
}

func (a *analyzer) expandPart(p syntax.WordPart, s *scope, quoted, first bool) value {
	switch p := p.(type) {
	case *syntax.Lit:
		return a.expandLiteral(p.Value, quoted, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			return value{text: p.Value}
		}
		if text, _, err := expand.Format(nil, p.Value, nil); err == nil {
			text, _, _ = strings.Cut(text, "\x00")
			return value{text: text}
		}
	case *syntax.DblQuoted:
		return a.expandParts(p.Parts, s, true)
	case *syntax.ParamExp:
		return a.expandParameter(p, s)
	case *syntax.ArithmExp:
		return value{text: placeholder, kind: workspaceName}
	case *syntax.CmdSubst:
		if a.listings[p] {
			return value{text: placeholder, kind: workspaceName}
		}
	case *syntax.ProcSubst:
		return value{text: "/dev/fd/63"} // its commands are separate parts
	}
	return value{kind: unknown}
}

// expandLiteral expands a leading tilde and removes backslashes, in unquoted or
// double-quoted text.
func (a *analyzer) expandLiteral(text string, quoted, first bool) value {
	var v value
	var b strings.Builder
	if first && strings.HasPrefix(text, "~") {
		if a.workspace.Home == "" || len(text) > 1 && text[1] != '/' {
			return value{kind: unknown}
		}
		b.WriteString(a.workspace.Home)
		text = text[1:]
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0):
			i++
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
			continue
		case !quoted && (c == '*' || c == '?' || c == '[' && strings.IndexByte(text[i:], ']') > 0):
			v.glob = true
		}
		b.WriteByte(c)
	}
	v.text = b.String()
	return v
}

// expandParameter returns the value of a loop variable, of HOME and of PWD. For
// numbers, such as $? or ${#x}, it returns a placeholder. Other variables are
// unknown.
func (a *analyzer) expandParameter(p *syntax.ParamExp, s *scope) value {
	if p.Param == nil || p.Excl || p.NestedParam != nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.Exp != nil || len(p.Modifiers) > 0 {
		return value{kind: unknown}
	}
	name := p.Param.Value
	switch {
	case name == "!":
		return value{text: "%" + placeholder, kind: workspaceName} // a job of this shell
	case p.Length || s.names[name] || name == "?" || name == "#" || name == "$":
		return value{text: placeholder, kind: workspaceName}
	case name == "HOME" && a.workspace.Home != "":
		return value{text: a.workspace.Home}
	case name == "PWD" && len(s.dirs) == 1:
		return value{text: s.dirs[0]}
	}
	return value{kind: unknown}
}

// expandHereDoc returns the text of a here-document or here-string; nil if it is
// known only at run time.
func (a *analyzer) expandHereDoc(rd *syntax.Redirect, s *scope) *string {
	v := value{}
	switch {
	case rd.Op == syntax.WordHdoc:
		v = a.expandWord(rd.Word, s)
	case rd.Hdoc != nil && (rd.Word.Lit() == "" || strings.Contains(rd.Word.Lit(), "\\")):
		v.text = rd.Hdoc.Lit() // the delimiter is quoted: the text is not expanded
	case rd.Hdoc != nil:
		// A here-document keeps the backslash of \", unlike double quotes.
		if v = a.expandParts(rd.Hdoc.Parts, s, true); strings.Contains(a.sourceText(rd.Hdoc), `\"`) {
			v.kind = unknown
		}
	}
	if v.kind != known {
		return nil
	}
	return &v.text
}

// locatePath returns the path that a value names, for all directories that the
// command may run in. If they lead to several locations, it returns a path that
// is Outside, else one that is Unknown.
func (a *analyzer) locatePath(v value, mode Mode, dirs []string) Path {
	if path.IsAbs(v.text) {
		dirs = []string{""}
	}
	if v.kind == unknown || len(dirs) == 0 {
		return Path{Text: shortened(displayText(v.text)), Mode: mode, Location: Unknown, git: hasElement(v.text, ".git")}
	}
	out := Path{Mode: mode, Location: Inside}
	for i, dir := range dirs {
		abs, linked, ok := a.workspace.resolveDotDot(dir + "/" + v.text)
		location := Unknown
		if ok && (!v.glob || !hasElement(strings.ReplaceAll(v.text, "..", ""), "..")) && !maybeDots().MatchString(v.text) {
			location = a.workspace.locate(displayText(abs), linked)
		}
		if i == 0 || location == Outside && out.Location != Outside || location == Unknown && out.Location == Inside {
			out.Text, out.Location = shortened(displayText(abs)), location
		}
		out.git = out.git || hasElement(abs, ".git")
	}
	return out
}

// maybeDots matches paths with an element that has a name and may be "..".
var maybeDots = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(`(?:^|/)(?:[.?*]+N|N[.?*N])[.?*N]*(?:/|$)`, "N", placeholder))
})

// leavesDir reports whether a text, as a path, may leave the working directory.
func leavesDir(text string) bool {
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || hasElement(text, "..") || maybeDots().MatchString(text)
}

// hasElement reports whether an element of a path is, or as a pattern may be,
// name, which begins with a dot. Only a dot matches a dot at the beginning.
func hasElement(text, name string) bool {
	for element := range strings.SplitSeq(text, "/") {
		if ok, err := path.Match(strings.ReplaceAll(strings.ToLower(element), "[!", "[^"), name); ok && err == nil && element[0] != '*' && element[0] != '?' {
			return true
		}
	}
	return false
}
