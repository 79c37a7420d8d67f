package shell

import (
	"path"
	"regexp"
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

func (v value) toWord() Word { return Word{Text: shortened(v.text), Known: v.kind == known && !v.glob} }

// isLiteral reports whether the shell passes exactly the text to the program.
func (v value) isLiteral() bool { return v.kind == known && !v.glob }

// placeholder stands for the text of a workspaceName value.
const placeholder = "\x01"

// displayText replaces placeholders by "*" for display.
func displayText(s string) string { return strings.ReplaceAll(s, placeholder, "*") }

// singleWord matches values that are not split into words or expanded as globs.
var singleWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]*$`) })

// expandFields returns the words that a word expands to; braces expand to
// several. The second result is false if there are too many.
func (r *analyzer) expandFields(w *syntax.Word, s *scope) ([]value, bool) {
	if r.shared.words++; r.shared.words > maxWords {
		return nil, false
	}
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(split) {
		return []value{r.expandWord(w, s)}, true
	}
	var all []value
	for expanded, err := range expand.BracesSeq(nil, split) {
		if r.shared.words++; err != nil || len(all) >= maxFields || r.shared.words > maxWords {
			return nil, false
		}
		all = append(all, r.expandWord(expanded, s))
	}
	return all, true
}

// expandWord returns the value of one word, as far as the script determines it.
func (r *analyzer) expandWord(w *syntax.Word, s *scope) value {
	v := r.expandParts(w.Parts, s, false)
	if v.kind == unknown {
		v.text = r.sourceText(w)
	}
	return v
}

// sourceText returns the source text of a node.
func (r *analyzer) sourceText(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(r.text) || from > to {
		return "?"
	}
	return r.text[from:to]
}

func (r *analyzer) expandParts(parts []syntax.WordPart, s *scope, quoted bool) value {
	var out value
	var text strings.Builder
	for i, p := range parts {
		v := r.expandPart(p, s, quoted, i == 0 && !quoted)
		out.kind = max(out.kind, v.kind)
		out.glob = out.glob || v.glob
		if v.kind == workspaceName && strings.HasSuffix(text.String(), "..") {
			out.kind = unknown
		}
		text.WriteString(v.text)
		if text.Len() > MaxText {
			return value{kind: unknown}
		}
	}
	out.text = text.String()
	return out
}

func (r *analyzer) expandPart(p syntax.WordPart, s *scope, quoted, first bool) value {
	switch p := p.(type) {
	case *syntax.Lit:
		return r.expandLiteral(p.Value, s, quoted, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			return value{text: p.Value}
		}
		text, _, err := expand.Format(nil, p.Value, nil)
		if err != nil {
			return value{kind: unknown}
		}
		text, _, _ = strings.Cut(text, "\x00")
		return value{text: text}
	case *syntax.DblQuoted:
		return r.expandParts(p.Parts, s, true)
	case *syntax.ParamExp:
		return r.expandParameter(p, s, quoted)
	case *syntax.ArithmExp:
		return value{text: placeholder, kind: workspaceName}
	case *syntax.CmdSubst:
		if r.shared.listings[p] {
			return value{text: placeholder, kind: workspaceName}
		}
		return value{kind: unknown}
	case *syntax.ProcSubst:
		return value{text: "/dev/fd/63"} // its commands are separate parts
	case *syntax.ExtGlob:
		return value{text: "*", glob: true}
	}
	return value{kind: unknown}
}

// expandLiteral expands a leading tilde and removes backslashes, in unquoted or
// double-quoted text.
func (r *analyzer) expandLiteral(text string, s *scope, quoted, first bool) value {
	var v value
	var b strings.Builder
	if first && strings.HasPrefix(text, "~") {
		name, rest, _ := strings.Cut(text[1:], "/")
		home := value{kind: unknown}
		switch {
		case name == "" && r.workspace.Home != "" && r.assignCounts["HOME"] == 0 && !r.volatile["HOME"]:
			home = value{text: r.workspace.Home}
		case name == "+" && len(s.dirs) == 1:
			home = value{text: s.dirs[0]}
		}
		if home.kind == unknown {
			return home
		}
		b.WriteString(home.text)
		if len(text) > 1+len(name) {
			b.WriteByte('/')
		}
		text = rest
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

// expandParameter returns the value of a variable if the script sets it exactly
// once, or if it is HOME or PWD and known. For numbers, such as $? or ${#x}, it
// returns a placeholder.
func (r *analyzer) expandParameter(p *syntax.ParamExp, s *scope, quoted bool) value {
	if p.Param == nil || p.Excl || p.NestedParam != nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.Exp != nil || len(p.Modifiers) > 0 {
		return value{kind: unknown}
	}
	name := p.Param.Value
	if p.Length || name == "?" || name == "#" || name == "$" || name == "!" {
		return value{text: placeholder, kind: workspaceName}
	}
	if r.allVolatile || r.volatile[name] {
		return value{kind: unknown}
	}
	v, ok := s.vars[name]
	if !ok {
		switch {
		case r.assignCounts[name] > 0:
			return value{kind: unknown}
		case name == "HOME" && r.workspace.Home != "":
			v = value{text: r.workspace.Home}
		case name == "PWD" && len(s.dirs) == 1:
			v = value{text: s.dirs[0]}
		default:
			return value{kind: unknown}
		}
	}
	if !quoted && v.kind == known && !singleWord().MatchString(v.text) {
		return value{kind: unknown} // the shell would split it or expand it as a glob
	}
	return v
}

// locatePath returns the path that a value names, for all directories that the
// command may run in. If they lead to several locations, it returns a path that
// is Outside, else one that is Unknown.
func (r *analyzer) locatePath(v value, mode Mode, dirs []string) Path {
	if v.kind == unknown {
		return Path{Text: shortened(v.text), Mode: mode, Location: Unknown}
	}
	if path.IsAbs(v.text) {
		dirs = []string{""}
	}
	if len(dirs) == 0 {
		return Path{Text: shortened(displayText(v.text)), Mode: mode, Location: Unknown}
	}
	out := Path{Mode: mode, Location: Inside}
	for i, dir := range dirs {
		abs, linked, ok := r.workspace.resolveDotDot(dir+"/"+v.text, v.glob || v.kind == workspaceName)
		location := Unknown
		if ok {
			location = r.locateAbsolute(v, abs, linked)
		}
		if i == 0 || location == Outside && out.Location != Outside || location == Unknown && out.Location == Inside {
			out.Text, out.Location = shortened(displayText(abs)), location
		}
	}
	return out
}

// locateAbsolute locates an absolute path that may contain placeholders.
func (r *analyzer) locateAbsolute(v value, abs string, linked bool) Location {
	if v.kind == workspaceName {
		abs = strings.ReplaceAll(abs, placeholder, "*")
	}
	return r.workspace.locate(abs, linked)
}
