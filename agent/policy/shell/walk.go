package shell

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// analyzer analyzes one script. Nested scripts have their own analyzers, which
// add to the same parts.
type analyzer struct {
	workspace Workspace
	text      string // source of the script
	parts     []Part
	truncated bool // there are more than maxParts parts, and the last element of parts says so
	// The results of surveyVariables: how often each variable is set, which
	// variables have unpredictable values, and whether all have.
	assignCounts map[string]int
	volatile     map[string]bool
	allVolatile  bool
	// enclosingFuncs are the functions whose bodies contain the current
	// statement, outermost first.
	enclosingFuncs []string
	depth          int // nesting depth of the current statement
	shared         *shared
}

// shared is the state that the analyzers of one command and its nested scripts
// share.
type shared struct {
	scriptBytes int // total size of the scripts
	words       int // number of expanded words
	// listings are command substitutions that print only names of files in the
	// workspace.
	listings map[*syntax.CmdSubst]bool
}

// stdinKind says what a command reads from its standard input.
type stdinKind int8

const (
	stdinEmpty     stdinKind = iota // no input, which is the default
	stdinScript                     // the text in cmdContext.input
	stdinFileNames                  // names of files in the workspace, one per line
	stdinUnknown                    // known only at run time
)

// cmdContext describes the surroundings of a command.
type cmdContext struct {
	start      int      // see Part.Start
	topLevel   bool     // offsets in the script are offsets in the whole text
	via        []string // see Part.Via
	shellDepth int      // number of shells around the command
	stdin      stdinKind
	input      string // the text on standard input if stdin is stdinScript
	concurrent bool   // in a pipeline, in a substitution or in the background
}

func (c *cmdContext) withWrapper(program string) *cmdContext {
	inner := *c
	inner.via = append(slices.Clone(c.via), program)
	return &inner
}

// nestingKeywords matches shell keywords that make a parser recurse.
var nestingKeywords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(if|elif|while|until|for|case|select|time|coproc|function)\b`)
})

// isTooDeep reports whether the nesting of a text may be too deep for a
// recursive parser.
func isTooDeep(text string) bool {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[', '`', '!', '?', '|', '&':
			n++
		}
	}
	return n > maxNesting || n+len(nestingKeywords().FindAllStringIndex(text, maxNesting+1)) > maxNesting
}

// walkScript parses and analyzes the text of a script.
func (r *analyzer) walkScript(text string, s *scope, c *cmdContext) {
	switch {
	case len(text) > MaxText:
		r.addPart(undecidedPart(c, text, "the script is longer than %d KB, and is not read", MaxText>>10))
		return
	case strings.ContainsRune(text, 0):
		r.addPart(undecidedPart(c, text, "there is a NUL byte in the script"))
		return
	case r.shared.scriptBytes > maxScripts:
		r.addPart(undecidedPart(c, text, "there are too many scripts in it to be read"))
		return
	case c.shellDepth > maxShellDepth || isTooDeep(text):
		r.addPart(undecidedPart(c, text, "the script is nested too deep to be read"))
		return
	}
	r.shared.scriptBytes += len(text)
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.addPart(undecidedPart(c, text, "it cannot be parsed: %s", shortened(err.Error())))
		return
	}
	inner := &analyzer{
		workspace: r.workspace, text: text, parts: r.parts, truncated: r.truncated, depth: r.depth, enclosingFuncs: r.enclosingFuncs,
		assignCounts: map[string]int{}, volatile: map[string]bool{}, allVolatile: r.allVolatile, shared: r.shared,
	}
	inner.surveyVariables(f)
	if hasHiddenCommand(f) {
		last := max(0, len(strings.TrimRight(text, " \t\n;"))-1) // a match that covers the last byte covers the whole text
		hidden := cmdContext{start: c.start, via: c.via}
		if c.topLevel {
			hidden.start = last
		}
		r.addPart(undecidedPart(&hidden, "a[$(...)]", "a text in it may be run as the subscript of an array"))
	}
	for _, name := range lookupVariables {
		if inner.volatile[name] && inner.assignCounts[name] == 0 {
			r.checkVariable(name, value{kind: unknown}, s, c)
		}
	}
	inner.parts = r.parts
	inner.walkStmts(f.Stmts, s, c)
	r.parts, r.truncated = inner.parts, inner.truncated
}

// addPart appends a part. It replaces the parts beyond maxParts by one undecided
// part.
func (r *analyzer) addPart(p Part) {
	if len(r.parts) >= maxParts {
		if !r.truncated {
			r.truncated = true
			r.parts = append(r.parts, undecidedPart(&cmdContext{}, "...", "there are more than %d commands in it", maxParts))
		}
		return
	}
	r.parts = append(r.parts, p)
}

func (r *analyzer) walkStmts(all []*syntax.Stmt, s *scope, c *cmdContext) {
	for _, st := range all {
		if r.truncated {
			return
		}
		before := s.dirs
		r.walkStmt(st, s, c)
		s.merge(before, s.visited) // the statement's cd may have failed
	}
}

// walkStmt analyzes one statement, including its redirections.
func (r *analyzer) walkStmt(st *syntax.Stmt, s *scope, c *cmdContext) {
	if r.depth++; r.depth > maxDepth {
		r.addPart(undecidedPart(c, r.sourceText(st), "it is nested too deep to be read"))
		r.depth--
		return
	}
	defer func() { r.depth-- }()
	inner := *c
	if c.topLevel {
		inner.start = int(st.Pos().Offset())
	}
	if st.Background {
		s, inner.concurrent = s.clone(), true
	}
	paths, network := r.walkRedirects(st.Redirs, s, &inner)
	before := len(r.parts)
	if st.Cmd != nil {
		r.walkCommand(st.Cmd, s, &inner)
	}
	if len(paths) == 0 && network == No {
		return
	}
	_, simple := st.Cmd.(*syntax.CallExpr)
	if simple && len(r.parts) > before {
		last := &r.parts[len(r.parts)-1]
		last.Paths, last.Network = append(last.Paths, paths...), last.Network.Or(network)
		last.listing = last.listing && !slices.ContainsFunc(paths, func(p Path) bool { return p.Location != Inside })
		return
	}
	r.addPart(Part{Known: true, Via: c.via, Paths: paths, Network: network, Start: inner.start})
}

// walkCommand analyzes a command of any kind.
func (r *analyzer) walkCommand(cmd syntax.Command, s *scope, c *cmdContext) {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		r.walkCall(cmd, s, c)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			r.walkPipeline(cmd, s, c)
			return
		}
		before := s.dirs
		r.walkStmt(cmd.X, s, c)
		if cmd.Op == syntax.OrStmt {
			s.merge(before, s.visited)
		}
		right := &scope{dirs: s.dirs, visited: s.visited, vars: maps.Clone(s.vars)}
		r.walkStmt(cmd.Y, right, c)
		s.dirs, s.visited = right.dirs, right.visited
	case *syntax.Block:
		r.walkStmts(cmd.Stmts, s, c)
	case *syntax.Subshell:
		r.walkStmts(cmd.Stmts, s.clone(), c)
	case *syntax.IfClause:
		r.walkIf(cmd, s, c)
	case *syntax.WhileClause:
		s.branch(func(s *scope) {
			r.walkStmts(cmd.Cond, s, c)
			r.walkStmts(cmd.Do, s, c)
		})
	case *syntax.ForClause:
		r.walkFor(cmd, s, c)
	case *syntax.CaseClause:
		r.walkSubstitutions(cmd.Word, s, c)
		for _, item := range cmd.Items {
			for _, w := range item.Patterns {
				r.walkSubstitutions(w, s, c)
			}
			s.branch(func(s *scope) { r.walkStmts(item.Stmts, s, c) })
		}
	case *syntax.FuncDecl:
		r.walkFunction(cmd, s, c)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			r.walkStmt(cmd.Stmt, s, c)
		}
	case *syntax.CoprocClause:
		inner := *c
		inner.concurrent, inner.stdin = true, stdinUnknown
		r.walkStmt(cmd.Stmt, s.clone(), &inner)
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			r.walkSubstitutions(a, s, c)
			r.checkAssignment(a, s, c)
			if a.Name == nil && a.Value != nil {
				r.checkDeclaration(r.expandWord(a.Value, s), s, c)
			}
			r.recordAssignment(a, s)
		}
	default:
		r.walkSubstitutions(cmd, s, c) // tests and arithmetic run only substitutions
	}
}

// checkDeclaration handles an argument of declare, export and the like that is
// not a plain assignment, such as export "PATH=x".
func (r *analyzer) checkDeclaration(v value, s *scope, c *cmdContext) {
	if v.kind != known {
		r.addPart(undecidedPart(c, v.text, "which variable it sets is known only when it runs"))
	} else if name, text, ok := parseAssignment(v); ok {
		r.checkVariable(name, text, s, c)
	}
}

// walkIf analyzes an if statement with its elif and else branches.
func (r *analyzer) walkIf(cmd *syntax.IfClause, s *scope, c *cmdContext) {
	s.branch(func(s *scope) {
		for n := 0; cmd != nil; n++ {
			if n > maxDepth {
				r.addPart(undecidedPart(c, r.sourceText(cmd), "it has too many branches to be read"))
				return
			}
			r.walkStmts(cmd.Cond, s, c)
			s.branch(func(s *scope) { r.walkStmts(cmd.Then, s, c) })
			cmd = cmd.Else
		}
	})
}

// walkFor analyzes for and select.
func (r *analyzer) walkFor(cmd *syntax.ForClause, s *scope, c *cmdContext) {
	r.walkSubstitutions(cmd.Loop, s, c)
	s.branch(func(s *scope) {
		if items, ok := cmd.Loop.(*syntax.WordIter); ok && !cmd.Select {
			r.setLoopVariable(items, s)
		}
		r.walkStmts(cmd.Do, s, c)
	})
}

// setLoopVariable sets the value of a loop variable if it has a single literal
// value, or if all of its values are names within the workspace.
func (r *analyzer) setLoopVariable(items *syntax.WordIter, s *scope) {
	delete(s.vars, items.Name.Value)
	if !items.InPos.IsValid() || r.volatile[items.Name.Value] {
		return
	}
	var all []value
	for _, w := range items.Items {
		fields, ok := r.expandFields(w, s)
		if !ok {
			return
		}
		all = append(all, fields...)
	}
	if len(all) == 1 && all[0].isLiteral() {
		s.vars[items.Name.Value] = all[0]
		return
	}
	for _, v := range all {
		if v.kind == unknown || strings.HasPrefix(v.text, "/") || strings.HasPrefix(v.text, "-") || slices.Contains(strings.Split(v.text, "/"), "..") {
			return
		}
	}
	s.vars[items.Name.Value] = value{text: placeholder, kind: workspaceName}
}

// walkFunction analyzes the body of a function at its declaration. Calls are
// not followed.
func (r *analyzer) walkFunction(cmd *syntax.FuncDecl, s *scope, c *cmdContext) {
	name := ""
	if cmd.Name != nil {
		name = cmd.Name.Value
	}
	if name == "cd" || name == "pushd" || name == "popd" {
		r.addPart(undecidedPart(c, name, "it changes what %s means", name))
	}
	r.enclosingFuncs = append(r.enclosingFuncs, name)
	inner := *c
	inner.concurrent = false
	r.walkStmt(cmd.Body, s.clone(), &inner)
	r.enclosingFuncs = r.enclosingFuncs[:len(r.enclosingFuncs)-1]
}
