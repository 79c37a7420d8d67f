package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

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
		listing := inner.stdin != something && listings(r.parts[from:])
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
			from := len(r.parts)
			r.stmts(n.Stmts, s.clone(), &inner)
			r.work.prints[n] = listings(r.parts[from:])
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

// listings says that commands print nothing but names of files of the workspace.
func listings(parts []Part) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p Part) bool { return !p.listing })
}
