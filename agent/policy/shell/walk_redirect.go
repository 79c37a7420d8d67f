package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirections are the files a statement opens; what it reads from goes to the
// context.
func (r *reader) redirections(all []*syntax.Redirect, s *scope, c *context) (paths []Path, network Answer) {
	for _, rd := range all {
		for _, w := range []*syntax.Word{rd.Word, rd.Hdoc} {
			if w != nil {
				r.substitutions(w, s, c)
			}
		}
		stdin := rd.N == nil || rd.N.Value == "0"
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			if !stdin {
				continue
			}
			c.stdin, c.input = something, ""
			if v := r.document(rd, s); v.kind == known {
				c.stdin, c.input = script, v.text
			}
			continue
		case syntax.DplIn, syntax.DplOut:
			if v := r.value(rd.Word, s); v.kind == plain || v.kind == known && duplicates(v.text) {
				if stdin && rd.Op == syntax.DplIn {
					c.stdin = something
				}
				continue
			}
		case syntax.RdrIn:
			if stdin {
				c.stdin = something
			}
		}
		mode := Writes
		if rd.Op == syntax.RdrIn || rd.Op == syntax.DplIn {
			mode = Reads
		}
		fields, ok := r.fields(rd.Word, s)
		if !ok {
			fields = []value{{text: r.written(rd.Word), kind: unknown}}
		}
		for _, v := range fields {
			if v.kind != unknown && (strings.HasPrefix(v.text, "/dev/tcp/") || strings.HasPrefix(v.text, "/dev/udp/")) {
				network = Yes
				continue
			}
			paths = append(paths, r.located(v, mode, s.dirs))
		}
	}
	return paths, network
}

// duplicates says that a redirection names a file descriptor, and no file.
func duplicates(text string) bool {
	return text == "-" || strings.Trim(strings.TrimSuffix(text, "-"), "0123456789") == "" && text != ""
}

// document is the text of a here-document, or of a here-string.
func (r *reader) document(rd *syntax.Redirect, s *scope) value {
	if rd.Op == syntax.WordHdoc {
		return r.value(rd.Word, s)
	}
	if rd.Hdoc == nil {
		return value{}
	}
	if end := rd.Word.Lit(); end == "" || strings.Contains(end, "\\") {
		var b strings.Builder // a quoted end: all is taken as it is
		for _, p := range rd.Hdoc.Parts {
			l, ok := p.(*syntax.Lit)
			if !ok {
				return value{kind: unknown}
			}
			b.WriteString(l.Value)
		}
		return value{text: b.String()}
	}
	v := r.joined(rd.Hdoc.Parts, s, true)
	if v.kind == known && strings.Contains(r.written(rd.Hdoc), `\"`) {
		v.kind = unknown // which stays as it is here, and not in double quotes
	}
	return v
}
