package shell

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// reader reads one command. Scripts within it are read by readers of their own
// that share its parts.
type reader struct {
	at    Place
	text  string // of the script that is read
	parts []Part
	full  bool // there are maxParts
	// What the survey of a script found: how often a variable is set, which are
	// changed in ways nobody can follow, and whether all may be.
	assigned map[string]int
	changed  map[string]bool
	opaque   bool
	// functions are those whose bodies are being read, outermost first.
	functions []string
	depth     int
	work      *work
}

// work bounds what is done for one command, scripts within scripts and all.
type work struct {
	bytes, fields int
	// prints are substitutions of commands that print nothing but names of files
	// of the workspace.
	prints map[*syntax.CmdSubst]bool
}

// feed is what a command finds on its input.
type feed int8

const (
	nothing   feed = iota // what mini gives: no input
	script                // the text in context.input
	listed                // names of files of the workspace, one a line
	something             // known only when it runs
)

// context is what surrounds a command.
type context struct {
	start  int
	top    bool // offsets of the script are those of the whole text
	via    []string
	nested int
	stdin  feed
	input  string
	piped  bool // part of a pipeline, or in the background
}

func (c *context) within(program string) *context {
	inner := *c
	inner.via = append(slices.Clone(c.via), program)
	return &inner
}

// nestings are the words of the shell that make parsers go deeper.
var nestings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(if|elif|while|until|for|case|select|time|coproc|function)\b`)
})

// tooDeep says that a text may nest deeper than it is safe to read.
func tooDeep(text string) bool {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[', '`', '!', '?', '|', '&':
			n++
		}
	}
	return n > maxOpeners || n+len(nestings().FindAllStringIndex(text, maxOpeners+1)) > maxOpeners
}

// script reads the text of a script.
func (r *reader) script(text string, s *scope, c *context) {
	switch {
	case len(text) > MaxText:
		r.add(undecided(c, text, "the script is longer than %d KB, and is not read", MaxText>>10))
		return
	case strings.ContainsRune(text, 0):
		r.add(undecided(c, text, "there is a NUL byte in the script"))
		return
	case r.work.bytes > maxScripts:
		r.add(undecided(c, text, "there are too many scripts in it to be read"))
		return
	case c.nested > maxNested || tooDeep(text):
		r.add(undecided(c, text, "the script is nested too deep to be read"))
		return
	}
	r.work.bytes += len(text)
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.add(undecided(c, text, "it cannot be parsed: %s", shorten(err.Error())))
		return
	}
	inner := &reader{
		at: r.at, text: text, parts: r.parts, full: r.full, depth: r.depth, functions: r.functions,
		assigned: map[string]int{}, changed: map[string]bool{}, opaque: r.opaque, work: r.work,
	}
	inner.survey(f)
	if hidesCommand(f) {
		last := max(0, len(strings.TrimRight(text, " \t\n;"))-1) // what covers it covers all
		hidden := context{start: c.start, via: c.via}
		if c.top {
			hidden.start = last
		}
		r.add(undecided(&hidden, "a[$(...)]", "a text in it may be run as the subscript of an array"))
	}
	for _, name := range deciding {
		if inner.changed[name] && inner.assigned[name] == 0 {
			r.setting(name, value{kind: unknown}, s, c)
		}
	}
	inner.parts = r.parts
	inner.stmts(f.Stmts, s, c)
	r.parts, r.full = inner.parts, inner.full
}

// add notes a part.
func (r *reader) add(p Part) {
	if len(r.parts) >= maxParts {
		if !r.full {
			r.full = true
			r.parts = append(r.parts, undecided(&context{}, "...", "there are more than %d commands in it", maxParts))
		}
		return
	}
	r.parts = append(r.parts, p)
}

func (r *reader) stmts(all []*syntax.Stmt, s *scope, c *context) {
	for _, st := range all {
		if r.full {
			return
		}
		before := s.dirs
		r.stmt(st, s, c)
		s.merge(before, s.seen) // a cd may have failed
	}
}

// stmt reads one statement, its redirections and what they hold.
func (r *reader) stmt(st *syntax.Stmt, s *scope, c *context) {
	if r.depth++; r.depth > maxDepth {
		r.add(undecided(c, r.written(st), "it is nested too deep to be read"))
		r.depth--
		return
	}
	defer func() { r.depth-- }()
	inner := *c
	if c.top {
		inner.start = int(st.Pos().Offset())
	}
	if st.Background {
		s, inner.piped = s.clone(), true
	}
	paths, network := r.redirections(st.Redirs, s, &inner)
	before := len(r.parts)
	if st.Cmd != nil {
		r.command(st.Cmd, s, &inner)
	}
	if len(paths) == 0 && network == No {
		return
	}
	_, simple := st.Cmd.(*syntax.CallExpr)
	if simple && len(r.parts) > before {
		last := &r.parts[len(r.parts)-1]
		last.Paths, last.Network = append(last.Paths, paths...), last.Network.Or(network)
		last.listing = last.listing && !slices.ContainsFunc(paths, func(p Path) bool { return p.Where != Inside })
		return
	}
	r.add(Part{Known: true, Via: c.via, Paths: paths, Network: network, Start: inner.start})
}

// command reads one command of any kind.
func (r *reader) command(cmd syntax.Command, s *scope, c *context) {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		r.call(cmd, s, c)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			r.pipeline(cmd, s, c)
			return
		}
		before := s.dirs
		r.stmt(cmd.X, s, c)
		if cmd.Op == syntax.OrStmt {
			s.merge(before, s.seen)
		}
		right := &scope{dirs: s.dirs, seen: s.seen, vars: maps.Clone(s.vars)}
		r.stmt(cmd.Y, right, c)
		s.dirs, s.seen = right.dirs, right.seen
	case *syntax.Block:
		r.stmts(cmd.Stmts, s, c)
	case *syntax.Subshell:
		r.stmts(cmd.Stmts, s.clone(), c)
	case *syntax.IfClause:
		r.conditional(cmd, s, c)
	case *syntax.WhileClause:
		s.branch(func(s *scope) {
			r.stmts(cmd.Cond, s, c)
			r.stmts(cmd.Do, s, c)
		})
	case *syntax.ForClause:
		r.loop(cmd, s, c)
	case *syntax.CaseClause:
		r.substitutions(cmd.Word, s, c)
		for _, item := range cmd.Items {
			for _, w := range item.Patterns {
				r.substitutions(w, s, c)
			}
			s.branch(func(s *scope) { r.stmts(item.Stmts, s, c) })
		}
	case *syntax.FuncDecl:
		r.function(cmd, s, c)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			r.stmt(cmd.Stmt, s, c)
		}
	case *syntax.CoprocClause:
		inner := *c
		inner.piped, inner.stdin = true, something
		r.stmt(cmd.Stmt, s.clone(), &inner)
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			r.substitutions(a, s, c)
			r.meaningful(a, s, c)
			if a.Name == nil && a.Value != nil {
				r.declared(r.value(a.Value, s), s, c)
			}
			r.assign(a, s)
		}
	default:
		r.substitutions(cmd, s, c) // tests and arithmetic, which run nothing else
	}
}

// declared is an argument of declare and its kin that is no plain assignment, as
// in export "PATH=x".
func (r *reader) declared(v value, s *scope, c *context) {
	if v.kind != known {
		r.add(undecided(c, v.text, "which variable it sets is known only when it runs"))
	} else if name, text, ok := assignment(v); ok {
		r.setting(name, text, s, c)
	}
}

// conditional reads "if", whose branches come one after the other.
func (r *reader) conditional(cmd *syntax.IfClause, s *scope, c *context) {
	s.branch(func(s *scope) {
		for n := 0; cmd != nil; n++ {
			if n > maxDepth {
				r.add(undecided(c, r.written(cmd), "it has too many branches to be read"))
				return
			}
			r.stmts(cmd.Cond, s, c)
			s.branch(func(s *scope) { r.stmts(cmd.Then, s, c) })
			cmd = cmd.Else
		}
	})
}

// loop reads "for" and "select".
func (r *reader) loop(cmd *syntax.ForClause, s *scope, c *context) {
	r.substitutions(cmd.Loop, s, c)
	s.branch(func(s *scope) {
		if items, ok := cmd.Loop.(*syntax.WordIter); ok && !cmd.Select {
			r.each(items, s)
		}
		r.stmts(cmd.Do, s, c)
	})
}

// each gives the variable of a loop its value, where all that it becomes are
// names within the workspace.
func (r *reader) each(items *syntax.WordIter, s *scope) {
	delete(s.vars, items.Name.Value)
	if !items.InPos.IsValid() || r.changed[items.Name.Value] {
		return
	}
	var all []value
	for _, w := range items.Items {
		fields, ok := r.fields(w, s)
		if !ok {
			return
		}
		all = append(all, fields...)
	}
	if len(all) == 1 && all[0].literal() {
		s.vars[items.Name.Value] = all[0]
		return
	}
	for _, v := range all {
		if v.kind == unknown || strings.HasPrefix(v.text, "/") || strings.HasPrefix(v.text, "-") || slices.Contains(strings.Split(v.text, "/"), "..") {
			return
		}
	}
	s.vars[items.Name.Value] = value{text: placeholder, kind: plain}
}

// function reads a body where it is declared; whoever calls it finds it read.
func (r *reader) function(cmd *syntax.FuncDecl, s *scope, c *context) {
	name := ""
	if cmd.Name != nil {
		name = cmd.Name.Value
	}
	if name == "cd" || name == "pushd" || name == "popd" {
		r.add(undecided(c, name, "it changes what %s means", name))
	}
	r.functions = append(r.functions, name)
	inner := *c
	inner.piped = false
	r.stmt(cmd.Body, s.clone(), &inner)
	r.functions = r.functions[:len(r.functions)-1]
}
