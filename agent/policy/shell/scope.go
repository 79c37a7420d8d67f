package shell

import (
	"maps"
	"regexp"
	"slices"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// cmdContext describes the surroundings of a command.
type cmdContext struct {
	start    int      // see Part.Start
	topLevel bool     // offsets in the script are offsets in the whole text
	via      []string // see Part.Via
	script   *string  // the text on standard input, if a here-document gives it
	names    bool     // standard input has names of files in the workspace, one per line
}

func (c cmdContext) withWrapper(program string) cmdContext {
	c.via = append(slices.Clone(c.via), program)
	return c
}

// scope is the state at one point of a script.
type scope struct {
	dirs []string // directories that a command may run in; empty: unknown
	// visited are the directories that cd changed to; "" stands for an unknown
	// one.
	visited []string
	names   map[string]bool // loop variables whose values are names in the workspace
}

func (s *scope) clone() *scope {
	return &scope{slices.Clone(s.dirs), slices.Clone(s.visited), maps.Clone(s.names)}
}

// settle adds the directories before, and those visited, to the ones that a
// command may run in. It is called after a command whose cd may have failed or
// not run.
func (s *scope) settle(before []string) {
	if len(s.visited) == 0 {
		return
	}
	dirs := slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.dirs, before, s.visited))))
	if len(s.dirs) == 0 || len(before) == 0 || dirs[0] == "" || len(dirs) > maxDirs {
		dirs = nil
	}
	s.dirs = dirs
}

// walkFor analyzes for and select. The loop variable is known if it has only
// names of files in the workspace, and nothing else in the script sets it.
func (a *analyzer) walkFor(cmd *syntax.ForClause, s *scope, c cmdContext) {
	a.walkSubstitutions(cmd.Loop, s, c)
	items, ok := cmd.Loop.(*syntax.WordIter)
	if !ok {
		a.walkLoop(cmd.Do, s, c)
		return
	}
	name := items.Name.Value
	a.checkVariable(name, value{kind: unknown}, false, s, c)
	isName := items.InPos.IsValid() && !cmd.Select && !a.assigned[name]
	for _, w := range items.Items {
		v := a.expandWord(w, s)
		isName = isName && v.kind != unknown && plainName().MatchString(v.text) && !leavesDir(v.text) && !hasElement(v.text, ".git")
	}
	s.names[name] = isName
	a.walkLoop(cmd.Do, s, c)
	s.names[name] = false
}

// variables matches the names in a script, with what stands around them if it
// does not set a variable of that name: "for NAME", "$NAME" and "-NAME".
var variables = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(for\s+|\$\{?|-)?\b([A-Za-z_]\w*)(:?=)?`) })

// findAssigned returns the names that a script may set other than in a loop.
func findAssigned(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range variables().FindAllStringSubmatch(text, -1) {
		names[m[2]] = names[m[2]] || m[1] == "" || m[3] != ""
	}
	return names
}

// plainName matches names that no program takes for an option, a setting or a
// host.
var plainName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\w.*?\[\]` + placeholder + `][\w./+,*?\[\]` + placeholder + `-]*$`)
})

// walkLoop analyzes statements that may run any number of times.
func (a *analyzer) walkLoop(stmts []*syntax.Stmt, s *scope, c cmdContext) {
	before := s.dirs
	a.walkStmts(stmts, s, c)
	if !slices.Equal(s.dirs, before) {
		a.addUndecided(c, "cd", "a loop changes the directory")
	}
}
