package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walkRedirects returns the files that redirections open and whether the
// redirections use the network. It sets the standard input of c.
func (r *analyzer) walkRedirects(all []*syntax.Redirect, s *scope, c *cmdContext) (paths []Path, network Tristate) {
	for _, rd := range all {
		for _, w := range []*syntax.Word{rd.Word, rd.Hdoc} {
			if w != nil {
				r.walkSubstitutions(w, s, c)
			}
		}
		stdin := rd.N == nil || rd.N.Value == "0"
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			if !stdin {
				continue
			}
			c.stdin, c.input = stdinUnknown, ""
			if v := r.expandHereDoc(rd, s); v.kind == known {
				c.stdin, c.input = stdinScript, v.text
			}
			continue
		case syntax.DplIn, syntax.DplOut:
			if v := r.expandWord(rd.Word, s); v.kind == workspaceName || v.kind == known && isDescriptor(v.text) {
				if stdin && rd.Op == syntax.DplIn {
					c.stdin = stdinUnknown
				}
				continue
			}
		case syntax.RdrIn:
			if stdin {
				c.stdin = stdinUnknown
			}
		}
		mode := Writes
		if rd.Op == syntax.RdrIn || rd.Op == syntax.DplIn {
			mode = Reads
		}
		fields, ok := r.expandFields(rd.Word, s)
		if !ok {
			fields = []value{{text: r.sourceText(rd.Word), kind: unknown}}
		}
		for _, v := range fields {
			if v.kind != unknown && (strings.HasPrefix(v.text, "/dev/tcp/") || strings.HasPrefix(v.text, "/dev/udp/")) {
				network = Yes
				continue
			}
			paths = append(paths, r.locatePath(v, mode, s.dirs))
		}
	}
	return paths, network
}

// isDescriptor reports whether the target of a redirection is a file descriptor
// or "-" (close), not a file.
func isDescriptor(target string) bool {
	return target == "-" || strings.Trim(strings.TrimSuffix(target, "-"), "0123456789") == "" && target != ""
}

// expandHereDoc returns the text of a here-document or here-string.
func (r *analyzer) expandHereDoc(rd *syntax.Redirect, s *scope) value {
	if rd.Op == syntax.WordHdoc {
		return r.expandWord(rd.Word, s)
	}
	if rd.Hdoc == nil {
		return value{}
	}
	if end := rd.Word.Lit(); end == "" || strings.Contains(end, "\\") {
		var b strings.Builder // the delimiter is quoted: the text is not expanded
		for _, p := range rd.Hdoc.Parts {
			l, ok := p.(*syntax.Lit)
			if !ok {
				return value{kind: unknown}
			}
			b.WriteString(l.Value)
		}
		return value{text: b.String()}
	}
	v := r.expandParts(rd.Hdoc.Parts, s, true)
	if v.kind == known && strings.Contains(r.sourceText(rd.Hdoc), `\"`) {
		v.kind = unknown // a here-document keeps this backslash, unlike double quotes, which expandParts assumes
	}
	return v
}
