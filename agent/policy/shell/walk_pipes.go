package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// walkPipeline analyzes the commands of a pipeline, each of which runs in its
// own subshell.
func (r *analyzer) walkPipeline(cmd *syntax.BinaryCmd, s *scope, c *cmdContext) {
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
		r.addPart(undecidedPart(c, r.sourceText(elements[0]), "the pipeline has more than %d commands", maxPipe))
		return
	}
	ends := []int{len(r.parts)}
	inner := *c
	inner.concurrent = true
	for _, st := range elements {
		from := len(r.parts)
		r.walkStmt(st, s.clone(), &inner)
		ends = append(ends, len(r.parts))
		listing := inner.stdin != stdinUnknown && allListings(r.parts[from:])
		inner.stdin, inner.input = stdinUnknown, ""
		if listing {
			inner.stdin = stdinFileNames
		}
	}
	for i := range elements {
		readers := r.parts[ends[i+1]:]
		for j := ends[i]; j < ends[i+1]; j++ {
			p := &r.parts[j]
			for _, next := range readers {
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

// walkSubstitutions analyzes command and process substitutions within a node.
func (r *analyzer) walkSubstitutions(n syntax.Node, s *scope, c *cmdContext) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			inner := *c
			inner.concurrent = true
			from := len(r.parts)
			r.walkStmts(n.Stmts, s.clone(), &inner)
			r.shared.listings[n] = allListings(r.parts[from:])
			return false
		case *syntax.ParamExp:
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" {
				r.addPart(undecidedPart(c, r.sourceText(n), "it expands a text that is known only when it runs"))
			}
		case *syntax.ProcSubst:
			inner := *c
			inner.concurrent, inner.stdin = true, stdinUnknown
			r.walkStmts(n.Stmts, s.clone(), &inner)
			return false
		}
		return true
	})
}

// allListings reports whether all parts print only names of files in the
// workspace.
func allListings(parts []Part) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p Part) bool { return !p.listing })
}
