package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// analyzer analyzes a command and the scripts nested in it.
type analyzer struct {
	workspace Workspace
	parts     []Part
	text      string          // source of the current script
	assigned  map[string]bool // the result of findAssigned for it
	depth     int             // nesting depth of the current statement
	stopped   bool            // a bound was exceeded, and the last part says so
	// listings are command substitutions that print only names of files in the
	// workspace.
	listings map[*syntax.CmdSubst]bool
}

// addPart appends a part. Beyond maxParts it stops the analysis.
func (a *analyzer) addPart(p Part) {
	if !a.stopped && len(a.parts) >= maxParts {
		p = Part{Program: "...", Start: p.Start, UndecidedReason: fmt.Sprintf("there are more than %d commands in it", maxParts)}
	}
	if !a.stopped {
		a.parts = append(a.parts, p)
		a.stopped = len(a.parts) > maxParts
	}
}

// addUndecided appends a part for a text that is not analyzed.
func (a *analyzer) addUndecided(c cmdContext, text, reason string) {
	a.addPart(Part{Program: shortened(text), Via: c.via, Start: c.start, UndecidedReason: reason})
}

// nestingKeywords matches shell keywords that make a parser recurse.
var nestingKeywords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(if|elif|while|until|for|case|select|time|coproc|function)\b|[({\[` + "`" + `!?|&]`)
})

// walkScript parses and analyzes the text of a script.
func (a *analyzer) walkScript(text string, s *scope, c cmdContext) {
	var f *syntax.File
	reason := ""
	switch {
	case len(text) > MaxText:
		reason = "the script is too long to be read"
	case strings.ContainsRune(text, 0):
		reason = "there is a NUL byte in the script"
	case len(c.via) > maxDepth || len(nestingKeywords().FindAllStringIndex(text, maxNesting+1)) > maxNesting:
		reason = "the script is nested too deep to be read"
	default:
		var err error
		if f, err = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), ""); err != nil {
			reason = "it cannot be parsed: " + shortened(err.Error())
		}
	}
	if reason != "" {
		a.addUndecided(c, text, reason)
		return
	}
	outer, outerAssigned := a.text, a.assigned
	a.text, a.assigned = text, findAssigned(text)
	defer func() { a.text, a.assigned = outer, outerAssigned }()
	if commandSubscript().MatchString(unquoted().Replace(a.withoutHereDocs(f))) {
		hidden := c
		if c.topLevel { // a match that covers the last byte covers the whole text
			hidden.start = max(0, len(strings.TrimRight(text, " \t\n;"))-1)
		}
		a.addUndecided(hidden, "a[$(...)]", "a text in it may be run as the subscript of an array")
	}
	a.walkStmts(f.Stmts, s, c)
}

// commandSubscript matches an array subscript that runs a command. Bash expands
// such subscripts also in quoted texts, if it evaluates them as arithmetic
// expressions.
var commandSubscript = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[A-Za-z_][A-Za-z0-9_]*\\[([^\\[\\]]|\\[[^\\[\\]]*\\])*(\\$\\(|`)")
})

// unquoted removes quotes and backslashes.
var unquoted = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer(`"`, "", "'", "", `\`, "") })

// withoutHereDocs returns the source of the current script without its
// here-documents, most of which are the contents of files.
func (a *analyzer) withoutHereDocs(f *syntax.File) string {
	text := []byte(a.text)
	syntax.Walk(f, func(n syntax.Node) bool {
		if rd, ok := n.(*syntax.Redirect); ok && rd.Hdoc != nil {
			clear(text[rd.Hdoc.Pos().Offset():rd.Hdoc.End().Offset()])
		}
		return true
	})
	return string(text)
}

func (a *analyzer) walkStmts(all []*syntax.Stmt, s *scope, c cmdContext) {
	for _, st := range all {
		before := s.dirs
		a.walkStmt(st, s, c)
		s.settle(before)
	}
}

// walkStmt analyzes one statement, including its redirections.
func (a *analyzer) walkStmt(st *syntax.Stmt, s *scope, c cmdContext) {
	if c.topLevel {
		c.start = int(st.Pos().Offset())
	}
	if a.stopped {
		return
	}
	a.depth++
	defer func() { a.depth-- }()
	if a.depth > maxDepth {
		a.addUndecided(c, a.sourceText(st), "it is nested too deep to be read")
		return
	}
	if st.Background {
		s = s.clone()
	}
	paths, network := a.walkRedirects(st.Redirs, s, &c)
	before, dirs := len(a.parts), s.dirs
	if st.Cmd != nil {
		a.walkCommand(st.Cmd, s, c)
	}
	if st.Negated { // "! cd a && b" runs b where cd failed
		s.settle(dirs)
	}
	if len(paths) == 0 && network == No {
		return
	}
	_, simple := st.Cmd.(*syntax.CallExpr)
	p := &Part{Known: true, Via: c.via, Start: c.start}
	if simple && len(a.parts) > before {
		p = &a.parts[len(a.parts)-1]
	}
	p.Network = p.Network.Or(network)
	p.Paths = append(p.Paths, paths...)
	if !simple || len(a.parts) == before {
		a.addPart(*p)
	}
}

// walkCommand analyzes a command of any kind.
func (a *analyzer) walkCommand(cmd syntax.Command, s *scope, c cmdContext) {
	before := s.dirs
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		a.walkCall(cmd, s, c)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			a.walkPipe(cmd, s, c)
			return
		}
		a.walkStmt(cmd.X, s, c)
		if cmd.Op == syntax.OrStmt {
			s.settle(before)
		}
		a.walkStmt(cmd.Y, s, c)
	case *syntax.Block:
		a.walkStmts(cmd.Stmts, s, c)
	case *syntax.Subshell:
		a.walkStmts(cmd.Stmts, s.clone(), c)
	case *syntax.IfClause:
		for ; cmd != nil && !a.stopped; cmd = cmd.Else {
			a.walkStmts(cmd.Cond, s, c)
			a.walkStmts(cmd.Then, s, c)
			s.settle(before)
		}
	case *syntax.WhileClause:
		a.walkLoop(append(slices.Clone(cmd.Cond), cmd.Do...), s, c)
	case *syntax.ForClause:
		a.walkFor(cmd, s, c)
	case *syntax.CaseClause:
		a.walkSubstitutions(cmd.Word, s, c)
		for _, item := range cmd.Items {
			for _, w := range item.Patterns {
				a.walkSubstitutions(w, s, c)
			}
			a.walkStmts(item.Stmts, s, c)
			s.settle(before)
		}
	case *syntax.FuncDecl:
		name := ""
		if cmd.Name != nil { // the parser accepts functions without a name
			name = cmd.Name.Value
		}
		a.addPart(Part{
			Program: name, Via: c.via, Start: c.start, UndecidedReason: "what a function does is known only when it is called",
			IsForkBomb: isForkBomb(name, cmd.Body),
		})
		a.walkStmt(cmd.Body, s.clone(), c)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			a.walkStmt(cmd.Stmt, s, c)
		}
	case *syntax.CoprocClause:
		a.addUndecided(c, "coproc", "the input of a coprocess is known only when it runs")
		a.walkStmt(cmd.Stmt, s.clone(), c)
	case *syntax.DeclClause:
		for _, assign := range cmd.Args {
			a.walkAssignment(assign, cmd.Variant.Value == "export", s, c)
		}
	default:
		a.walkSubstitutions(cmd, s, c) // tests and arithmetic run only substitutions
	}
}

// walkPipe analyzes two commands, the second of which reads from the first. Each
// runs in a subshell.
func (a *analyzer) walkPipe(cmd *syntax.BinaryCmd, s *scope, c cmdContext) {
	from := len(a.parts)
	a.walkStmt(cmd.X, s.clone(), c)
	middle := len(a.parts)
	c.script, c.names = nil, allListings(a.parts[from:])
	a.walkStmt(cmd.Y, s.clone(), c)
	for i := from; i < middle; i++ {
		p := &a.parts[i]
		for _, next := range a.parts[middle:] {
			p.pipesUnknown = p.pipesUnknown || !next.Known
			if next.Known && next.Program != "" && !slices.Contains(p.PipesInto, next.Program) {
				p.PipesInto = append(p.PipesInto, next.Program)
			}
		}
	}
}

// allListings reports whether all parts print only names of files in the
// workspace.
func allListings(parts []Part) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p Part) bool { return !p.listing || p.UndecidedReason != "" })
}

// walkSubstitutions analyzes command and process substitutions within a node.
func (a *analyzer) walkSubstitutions(n syntax.Node, s *scope, c cmdContext) {
	c.script, c.names = nil, false
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			from := len(a.parts)
			a.walkStmts(n.Stmts, s.clone(), c)
			a.listings[n] = allListings(a.parts[from:])
			return false
		case *syntax.ProcSubst:
			a.walkStmts(n.Stmts, s.clone(), c)
			return false
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
				a.checkVariable(n.Param.Value, value{kind: unknown}, false, s, c)
			}
			if n.Excl || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && (n.Exp.Word == nil || n.Exp.Word.Lit() != "Q") {
				a.addUndecided(c, a.sourceText(n), "it expands a text that is known only when it runs")
			}
		}
		return !a.stopped
	})
}

// walkRedirects returns the files that redirections open, and whether they use
// the network. It sets the standard input of c.
func (a *analyzer) walkRedirects(all []*syntax.Redirect, s *scope, c *cmdContext) (paths []Path, network Tristate) {
	for _, rd := range all {
		for _, w := range []*syntax.Word{rd.Word, rd.Hdoc} {
			if w != nil {
				a.walkSubstitutions(w, s, *c)
			}
		}
		stdin := rd.N == nil || rd.N.Value == "0"
		mode := Writes
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			if stdin {
				c.script, c.names = a.expandHereDoc(rd, s), false
			}
			continue
		case syntax.RdrIn, syntax.DplIn:
			mode = Reads
			if stdin {
				c.script, c.names = nil, false
			}
		}
		v := a.expandWord(rd.Word, s)
		isDescriptor := v.text == "-" || v.text != "" && strings.Trim(strings.TrimSuffix(v.text, "-"), "0123456789"+placeholder) == ""
		switch {
		case (rd.Op == syntax.DplIn || rd.Op == syntax.DplOut) && v.kind != unknown && isDescriptor:
		case v.kind != unknown && (strings.HasPrefix(v.text, "/dev/tcp/") || strings.HasPrefix(v.text, "/dev/udp/")):
			network = Yes
		default:
			paths = append(paths, a.locatePath(v, mode, s.dirs))
		}
	}
	return paths, network
}

// isForkBomb reports whether a function starts itself in a pipeline or in the
// background.
func isForkBomb(name string, body *syntax.Stmt) bool {
	callsItself := func(st *syntax.Stmt) bool {
		call, ok := st.Cmd.(*syntax.CallExpr)
		return ok && len(call.Args) > 0 && call.Args[0].Lit() == name
	}
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background && callsItself(n)
		case *syntax.BinaryCmd:
			found = found || n.Op == syntax.Pipe && (callsItself(n.X) || callsItself(n.Y))
		}
		return !found
	})
	return found
}
