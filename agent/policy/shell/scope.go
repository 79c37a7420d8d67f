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
	dirs []string // none: unknown
	// seen are the folders that a cd has led to; "" is one that is not known.
	seen []string
	vars map[string]value
}

func (s *scope) clone() *scope {
	return &scope{dirs: slices.Clone(s.dirs), seen: slices.Clone(s.seen), vars: maps.Clone(s.vars)}
}

// merge adds the folders that another way through the script may lead to.
func (s *scope) merge(before, seen []string) {
	if len(seen) == 0 {
		return
	}
	if len(s.dirs) == 0 || len(before) == 0 || slices.Contains(seen, "") {
		s.dirs = nil
		return
	}
	s.dirs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.dirs, before, seen))))
	if len(s.dirs) > maxDirs {
		s.dirs = nil
	}
}

// branch reads what may or may not be run, or be run again and again.
func (s *scope) branch(read func(*scope)) {
	c := s.clone()
	read(c)
	s.seen = c.seen
	s.merge(c.dirs, c.seen)
}

// move notes the folders that a cd leads to; none are not known.
func (s *scope) move(dirs ...string) {
	s.dirs = dirs
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	s.seen = append(slices.Clone(s.seen), dirs...)
}

// survey looks for what makes the values of variables unknown: those that are
// set more than once, or by something that has no value in the text.
func (r *reader) survey(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
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
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				r.changed[n.Param.Value] = true
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			syntax.Walk(n, func(n syntax.Node) bool {
				if l, ok := n.(*syntax.Lit); ok {
					r.changed[l.Value] = true
				}
				return true
			})
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
	words := c.Args
	if len(words) == 0 {
		r.opaque = r.opaque || slices.ContainsFunc(c.Assigns, func(a *syntax.Assign) bool { return a.Name != nil && a.Name.Value == "IFS" })
		return
	}
	for len(words) > 1 && (words[0].Lit() == "command" || words[0].Lit() == "builtin") {
		words = words[1:]
	}
	builtin := words[0].Lit()
	switch builtin {
	case "eval", "source", ".", "let":
		r.opaque = true
		return
	case "printf":
		if len(words) < 2 || !strings.HasPrefix(r.plainly(words[1]), "-v") {
			return
		}
	case "read", "mapfile", "readarray", "getopts", "unset", "wait":
	default:
		return
	}
	for _, w := range words[1:] {
		text := r.plainly(w)
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "-v"), "[")
		if builtin == "unset" && name != "PATH" && slices.Contains(deciding, name) {
			continue // without it things are as usual
		}
		r.changed[name] = true
		r.opaque = r.opaque || text == "" // a name that is known only when it runs
	}
}

// plainly is the text of a word that has no variables; empty of another one.
func (r *reader) plainly(w *syntax.Word) string {
	if v := r.value(w, &scope{}); v.kind == known {
		return v.text
	}
	return ""
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
