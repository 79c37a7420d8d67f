package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is what holds at one place of a script: the folders a command may be
// in, and the variables whose values are known.
type scope struct {
	dirs  []string // none: unknown
	stack [][]string
	vars  map[string]value
}

func (s *scope) clone() *scope {
	return &scope{dirs: slices.Clone(s.dirs), stack: slices.Clone(s.stack), vars: maps.Clone(s.vars)}
}

// merge adds the folders that another way through the script may lead to.
func (s *scope) merge(dirs []string) {
	if len(s.dirs) == 0 || len(dirs) == 0 {
		s.dirs = nil
		return
	}
	for _, dir := range dirs {
		if !slices.Contains(s.dirs, dir) {
			s.dirs = append(s.dirs, dir)
		}
	}
	if len(s.dirs) > maxDirs {
		s.dirs = nil
	}
}

// branch reads what may or may not be run, or be run again and again.
func (s *scope) branch(read func(*scope)) {
	c := s.clone()
	read(c)
	s.merge(c.dirs)
}

// survey looks for what makes the values of variables unknown: those that are
// set more than once, or by something that has no value in the text.
func (r *reader) survey(f *syntax.File) {
	arithmetic := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if l, ok := n.(*syntax.Lit); ok {
				r.changed[l.Value] = true
			}
			return true
		})
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		r.surveySubscripts(n)
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			if !n.Naked {
				r.assigned[n.Name.Value]++
			}
			if n.Append || n.Index != nil || n.Array != nil {
				r.changed[n.Name.Value] = true
			}
		case *syntax.WordIter:
			r.assigned[n.Name.Value]++
			if slices.Contains(deciding, n.Name.Value) {
				r.changed[n.Name.Value], r.assigned[n.Name.Value] = true, 0
			}
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil {
				r.changed[n.Param.Value] = r.changed[n.Param.Value] || n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			arithmetic(n)
		case *syntax.DeclClause:
			r.opaque = r.opaque || n.Variant.Value == "nameref" || slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool {
				return a.Name == nil && (a.Value == nil || a.Value.Lit() == "" || strings.Contains(a.Value.Lit(), "n"))
			})
		case *syntax.CallExpr:
			r.surveyCall(n)
		}
		return true
	})
	for name, times := range r.assigned {
		if times > 1 {
			r.changed[name] = true
		}
	}
}

// surveyCall is about builtins that set variables.
func (r *reader) surveyCall(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		r.opaque = r.opaque || slices.ContainsFunc(c.Assigns, func(a *syntax.Assign) bool { return a.Name != nil && a.Name.Value == "IFS" })
		return
	}
	words := c.Args
	for len(words) > 0 && (words[0].Lit() == "command" || words[0].Lit() == "builtin") {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	switch words[0].Lit() {
	case "set":
		for _, w := range words[1:] {
			l := w.Lit()
			r.physical = r.physical || l == "physical" || strings.HasPrefix(l, "-") && strings.Contains(l, "P")
			r.errexit = r.errexit || l == "errexit" || strings.HasPrefix(l, "-") && strings.Contains(l, "e")
		}
	case "eval", "source", ".", "let":
		r.opaque = true
	case "printf":
		if len(words) > 2 && strings.HasPrefix(r.plainly(words[1]), "-v") {
			name := r.plainly(words[1])[2:]
			if name == "" {
				name = r.plainly(words[2])
			}
			r.change(name)
		}
	case "read", "mapfile", "readarray", "getopts", "unset", "wait":
		for _, w := range words[1:] {
			name := r.plainly(w)
			if words[0].Lit() == "unset" && name != "PATH" && slices.Contains(deciding, name) {
				continue // without it things are as usual
			}
			r.change(name)
		}
	}
}

// plainly is the text of a word that has no variables; empty of another one.
func (r *reader) plainly(w *syntax.Word) string {
	if v := r.value(w, &scope{}); v.kind == known {
		return v.text
	}
	return ""
}

// change notes that a variable gets a value nobody can tell; any does where it
// has no name.
func (r *reader) change(name string) {
	name, _, _ = strings.Cut(name, "[")
	r.opaque = r.opaque || name == ""
	r.changed[name] = true
}

// assign notes the value of a variable that is set where the script is sure to
// come by.
func (r *reader) assign(a *syntax.Assign, s *scope) {
	if a.Name == nil || a.Naked || a.Append || a.Index != nil || a.Array != nil {
		return
	}
	v := value{}
	if a.Value != nil {
		v = r.value(a.Value, s)
		v.glob = false // names are made of patterns where the variable is used
	}
	if v.kind == unknown || r.changed[a.Name.Value] {
		delete(s.vars, a.Name.Value)
		return
	}
	s.vars[a.Name.Value] = v
}
