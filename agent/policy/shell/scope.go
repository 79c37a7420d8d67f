package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is the state at one point of a script: the directories that a command
// may run in, and the variables whose values are known.
type scope struct {
	dirs []string // empty: unknown
	// visited are the directories that cd changed to; "" stands for an unknown
	// one.
	visited []string
	vars    map[string]value
}

func (s *scope) clone() *scope {
	return &scope{dirs: slices.Clone(s.dirs), visited: slices.Clone(s.visited), vars: maps.Clone(s.vars)}
}

// merge adds the directories before and seen to those that a command may run
// in, because a cd may fail or not run. If seen is empty, it does nothing. The
// directories become unknown if one of them is, or if they exceed maxDirs.
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

// branch calls walk for statements that may run any number of times, including
// zero.
func (s *scope) branch(walk func(*scope)) {
	child := s.clone()
	walk(child)
	s.visited = child.visited
	s.merge(child.dirs, child.visited)
}

// changeDirs sets the directories that a cd may lead to; no arguments means
// unknown.
func (s *scope) changeDirs(dirs ...string) {
	s.dirs = dirs
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	s.visited = append(slices.Clone(s.visited), dirs...)
}

// surveyVariables finds variables whose values are unpredictable, because they
// are set more than once or their values are not in the text.
func (r *analyzer) surveyVariables(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			if !n.Naked {
				r.assignCounts[n.Name.Value]++
			}
			if n.Append || n.Index != nil || n.Array != nil {
				r.volatile[n.Name.Value] = true
			}
		case *syntax.WordIter:
			r.assignCounts[n.Name.Value]++
			if slices.Contains(lookupVariables, n.Name.Value) {
				r.volatile[n.Name.Value], r.assignCounts[n.Name.Value] = true, 0 // walkScript adds a part for it
			}
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				r.volatile[n.Param.Value] = true
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			syntax.Walk(n, func(n syntax.Node) bool {
				if l, ok := n.(*syntax.Lit); ok {
					r.volatile[l.Value] = true
				}
				return true
			})
		case *syntax.DeclClause:
			r.allVolatile = r.allVolatile || n.Variant.Value == "nameref" || slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool {
				return a.Name == nil && (a.Value == nil || a.Value.Lit() == "" || strings.Contains(a.Value.Lit(), "n"))
			})
		case *syntax.CallExpr:
			r.surveyCall(n)
		}
		return true
	})
	for name, count := range r.assignCounts {
		if count > 1 {
			r.volatile[name] = true
		}
	}
}

// surveyCall finds variables that builtins set.
func (r *analyzer) surveyCall(c *syntax.CallExpr) {
	words := c.Args
	if len(words) == 0 {
		r.allVolatile = r.allVolatile || slices.ContainsFunc(c.Assigns, func(a *syntax.Assign) bool { return a.Name != nil && a.Name.Value == "IFS" })
		return
	}
	for len(words) > 1 && (words[0].Lit() == "command" || words[0].Lit() == "builtin") {
		words = words[1:]
	}
	builtin := words[0].Lit()
	switch builtin {
	case "eval", "source", ".", "let":
		r.allVolatile = true
		return
	case "printf":
		if len(words) < 2 || !strings.HasPrefix(r.constantText(words[1]), "-v") {
			return
		}
	case "read", "mapfile", "readarray", "getopts", "unset", "wait":
	default:
		return
	}
	for _, w := range words[1:] {
		text := r.constantText(w)
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "-v"), "[")
		if builtin == "unset" && name != "PATH" && slices.Contains(lookupVariables, name) {
			continue // unsetting such a variable restores the default
		}
		r.volatile[name] = true
		r.allVolatile = r.allVolatile || text == "" // the name is known only at run time
	}
}

// constantText returns the text of a word if it is known without variables,
// else "".
func (r *analyzer) constantText(w *syntax.Word) string {
	if v := r.expandWord(w, &scope{}); v.kind == known {
		return v.text
	}
	return ""
}

// recordAssignment stores the value of a variable. If the value is unpredictable,
// it removes the stored one.
func (r *analyzer) recordAssignment(a *syntax.Assign, s *scope) {
	if a.Name == nil || a.Naked || a.Append || a.Index != nil || a.Array != nil {
		return
	}
	v := value{}
	if a.Value != nil {
		v = r.expandWord(a.Value, s)
		v.glob = false // globs are expanded when the variable is used
	}
	if v.kind == unknown || r.volatile[a.Name.Value] {
		delete(s.vars, a.Name.Value)
		return
	}
	s.vars[a.Name.Value] = v
}
