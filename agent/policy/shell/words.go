package shell

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// kind is how much is known of a value.
type kind int8

const (
	known kind = iota
	// plain is a number, or the name of a file of the workspace: the words of
	// "for f in *.py", and what find prints.
	plain
	unknown
)

// value is what a word is after expansion.
type value struct {
	text string
	kind kind
	glob bool // text is a pattern of names
}

func (v value) word() Word { return Word{Text: shorten(v.text), Known: v.kind == known && !v.glob} }

// literal says that the value is the text and nothing else.
func (v value) literal() bool { return v.kind == known && !v.glob }

// placeholder stands for the text of a plain value.
const placeholder = "\x01"

// plainText is what a plain value looks like where it is shown.
func shownText(s string) string { return strings.ReplaceAll(s, placeholder, "*") }

// harmless are characters that make a value one word, and no pattern.
var harmless = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]*$`) })

// fields are the words that a word expands to; more than one where it has
// braces. ok is false where there would be too many.
func (r *reader) fields(w *syntax.Word, s *scope) ([]value, bool) {
	if r.work.fields++; r.work.fields > maxWords {
		return nil, false
	}
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(split) {
		return []value{r.value(w, s)}, true
	}
	var all []value
	for one, err := range expand.BracesSeq(nil, split) {
		if r.work.fields++; err != nil || len(all) >= maxFields || r.work.fields > maxWords {
			return nil, false
		}
		all = append(all, r.value(one, s))
	}
	return all, true
}

// value expands one word, as far as its text alone says what it is.
func (r *reader) value(w *syntax.Word, s *scope) value {
	v := r.joined(w.Parts, s, false)
	if v.kind == unknown {
		v.text = r.written(w)
	}
	return v
}

// written is a word as it stands in the script.
func (r *reader) written(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(r.text) || from > to {
		return "?"
	}
	return r.text[from:to]
}

func (r *reader) joined(parts []syntax.WordPart, s *scope, quoted bool) value {
	var out value
	var text strings.Builder
	for i, p := range parts {
		v := r.part(p, s, quoted, i == 0 && !quoted)
		out.kind = max(out.kind, v.kind)
		out.glob = out.glob || v.glob
		if v.kind == plain && strings.HasSuffix(text.String(), "..") {
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

func (r *reader) part(p syntax.WordPart, s *scope, quoted, first bool) value {
	switch p := p.(type) {
	case *syntax.Lit:
		return r.lit(p.Value, s, quoted, first)
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
		return r.joined(p.Parts, s, true)
	case *syntax.ParamExp:
		return r.parameter(p, s, quoted)
	case *syntax.ArithmExp:
		return value{text: placeholder, kind: plain}
	case *syntax.CmdSubst:
		if r.work.prints[p] {
			return value{text: placeholder, kind: plain}
		}
		return value{kind: unknown}
	case *syntax.ProcSubst:
		return value{text: "/dev/fd/63"} // the commands are parts of their own
	case *syntax.ExtGlob:
		return value{text: "*", glob: true}
	}
	return value{kind: unknown}
}

// lit takes the backslashes out of unquoted text, and out of text in double
// quotes.
func (r *reader) lit(text string, s *scope, quoted, first bool) value {
	var v value
	var b strings.Builder
	if first && strings.HasPrefix(text, "~") {
		name, rest, _ := strings.Cut(text[1:], "/")
		home := value{kind: unknown}
		switch {
		case name == "" && r.at.Home != "" && r.assigned["HOME"] == 0 && !r.changed["HOME"]:
			home = value{text: r.at.Home}
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

// parameter is the value of a variable, where the script itself set it once.
func (r *reader) parameter(p *syntax.ParamExp, s *scope, quoted bool) value {
	if p.Param == nil || p.Excl || p.NestedParam != nil || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.Exp != nil || len(p.Modifiers) > 0 {
		return value{kind: unknown}
	}
	name := p.Param.Value
	if p.Length || name == "?" || name == "#" || name == "$" || name == "!" {
		return value{text: placeholder, kind: plain}
	}
	if r.opaque || r.changed[name] {
		return value{kind: unknown}
	}
	v, ok := s.vars[name]
	if !ok {
		switch {
		case r.assigned[name] > 0:
			return value{kind: unknown}
		case name == "HOME" && r.at.Home != "":
			v = value{text: r.at.Home}
		case name == "PWD" && len(s.dirs) == 1:
			v = value{text: s.dirs[0]}
		default:
			return value{kind: unknown}
		}
	}
	if !quoted && v.kind == known && !harmless().MatchString(v.text) {
		return value{kind: unknown} // it would be split, or is a pattern
	}
	return v
}

// located makes of a value the path it names, in each folder the command may
// be in.
func (r *reader) located(v value, mode Mode, dirs []string) Path {
	if v.kind == unknown {
		return Path{Text: shorten(v.text), Mode: mode, Where: Unknown}
	}
	if path.IsAbs(v.text) {
		dirs = []string{""}
	}
	if len(dirs) == 0 {
		return Path{Text: shorten(shownText(v.text)), Mode: mode, Where: Unknown}
	}
	out := Path{Mode: mode, Where: Inside}
	for i, dir := range dirs {
		abs, linked, ok := r.at.walk(dir+"/"+v.text, v.glob || v.kind == plain)
		side := Unknown
		if ok {
			side = r.side(v, abs, linked)
		}
		if i == 0 || side == Outside && out.Where != Outside || side == Unknown && out.Where == Inside {
			out.Text, out.Where = shorten(shownText(abs)), side
		}
	}
	return out
}

// side is where an absolute path is, whose unknown parts are plain names.
func (r *reader) side(v value, abs string, linked bool) Where {
	if v.kind == plain {
		abs = strings.ReplaceAll(abs, placeholder, "*")
	}
	return r.at.where(abs, linked)
}
