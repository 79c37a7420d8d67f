package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// andOr reads a list of && and ||. What comes after && runs only where all
// before it went well, so that a cd has led where it says.
func (r *reader) andOr(cmd *syntax.BinaryCmd, s *scope, c *context) {
	type link struct {
		op syntax.BinCmdOperator
		st *syntax.Stmt
	}
	var links []link
	var first *syntax.Stmt
	for cmd != nil {
		links = append(links, link{cmd.Op, cmd.Y})
		first = cmd.X
		next, ok := cmd.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(cmd.X.Redirs) > 0 || cmd.X.Negated || cmd.X.Background || next.Op != syntax.AndStmt && next.Op != syntax.OrStmt {
			break
		}
		cmd = next
	}
	slices.Reverse(links)
	seen := s.clone()
	r.stmt(first, s, c)
	seen.merge(s.dirs)
	for i, l := range links {
		if l.op == syntax.OrStmt {
			if i == len(links)-1 && leaves(l.st) {
				r.stmt(l.st, s.clone(), c)
				return // whoever goes on came here by the other way
			}
			if len(seen.dirs) == 0 {
				s.dirs = nil
			} else {
				s.merge(seen.dirs)
			}
		}
		vars := s.vars
		inner := s.clone()
		r.stmt(l.st, inner, c)
		if l.op == syntax.AndStmt && i == 0 {
			vars = s.vars
		}
		s.dirs, s.stack, s.vars = inner.dirs, inner.stack, vars
		seen.merge(s.dirs)
	}
	if !r.errexit {
		s.dirs = seen.dirs
	}
}

// leaves says that a statement ends the script or the loop.
func leaves(st *syntax.Stmt) bool {
	switch cmd := st.Cmd.(type) {
	case *syntax.CallExpr:
		return len(cmd.Args) > 0 && slices.Contains([]string{"exit", "return", "break", "continue"}, cmd.Args[0].Lit())
	case *syntax.Block:
		return len(cmd.Stmts) > 0 && leaves(cmd.Stmts[len(cmd.Stmts)-1])
	}
	return false
}

// pipeline reads commands side by side, each in a shell of its own.
func (r *reader) pipeline(cmd *syntax.BinaryCmd, s *scope, c *context) {
	var elements []*syntax.Stmt
	for {
		elements = append(elements, cmd.Y)
		next, ok := cmd.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(cmd.X.Redirs) > 0 || cmd.X.Negated || next.Op != syntax.Pipe && next.Op != syntax.PipeAll {
			elements = append(elements, cmd.X)
			break
		}
		cmd = next
	}
	slices.Reverse(elements)
	if len(elements) > maxPipe {
		r.add(undecided(c, r.written(elements[0]), "the pipeline has more than %d commands", maxPipe))
		return
	}
	ends := []int{len(r.parts)}
	inner := *c
	inner.piped = true
	for _, st := range elements {
		from := len(r.parts)
		r.stmt(st, s.clone(), &inner)
		ends = append(ends, len(r.parts))
		listing := inner.stdin != something && len(r.parts) > from
		for _, p := range r.parts[from:] {
			listing = listing && p.listing
		}
		inner.stdin, inner.input = something, ""
		if listing {
			inner.stdin = listed
		}
	}
	for i := range elements {
		into := r.parts[ends[i+1]:]
		for j := ends[i]; j < ends[i+1]; j++ {
			p := &r.parts[j]
			for _, next := range into {
				switch {
				case !next.Known:
					p.pipesUnknown = true
				case next.Program != "" && !slices.Contains(p.PipesInto, next.Program):
					p.PipesInto = append(p.PipesInto, next.Program)
				}
			}
		}
	}
}

// substitutions reads the commands within words.
func (r *reader) substitutions(n syntax.Node, s *scope, c *context) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			inner := *c
			inner.piped = true
			r.stmts(n.Stmts, s.clone(), &inner)
			return false
		case *syntax.ParamExp:
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" {
				r.add(undecided(c, r.written(n), "it expands a text that is known only when it runs"))
			}
		case *syntax.ProcSubst:
			inner := *c
			inner.piped, inner.stdin = true, something
			r.stmts(n.Stmts, s.clone(), &inner)
			return false
		}
		return true
	})
}

// prints says that commands print nothing but names of files of the workspace.
func (r *reader) prints(sub *syntax.CmdSubst, s *scope) bool {
	if answer, ok := r.work.prints[sub]; ok || len(sub.Stmts) != 1 {
		return answer
	}
	r.work.prints[sub] = false
	probe := &reader{
		at: r.at, text: r.text, assigned: r.assigned, changed: r.changed, opaque: r.opaque,
		depth: r.depth, functions: r.functions, work: r.work,
	}
	probe.stmt(sub.Stmts[0], s.clone(), &context{})
	names := len(probe.parts) > 0 && !slices.ContainsFunc(probe.parts, func(p Part) bool { return !p.listing })
	r.work.prints[sub] = names
	return names
}
