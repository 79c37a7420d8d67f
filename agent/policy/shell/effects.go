package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// addEffects sets the properties of a program's part, as far as its line in the
// table and its arguments determine them. key is the name of the line.
func (a *analyzer) addEffects(p *Part, key string, spec program, args []value, s *scope, c cmdContext) {
	g := a.parseArguments(p, spec, args, s, false)
	a.addOperandPaths(p, spec, g, s)
	p.Network, p.System, p.Sudo = p.Network.Or(spec.answer("network", g)), spec.answer("system", g), spec.answer("sudo", g)
	p.RecursiveDelete = spec.answer("deletes", g)
	if g.hasFlag(spec.list("in-place")...) {
		for i := range p.Paths {
			p.Paths[i].Mode = Writes
		}
	}
	if remote := spec.attributes["remote"]; remote != "" {
		if slices.ContainsFunc(g.operands, func(v value) bool { return strings.Contains(v.text, remote) }) {
			p.Network = Yes
		}
	}
	if scriptMayRun(spec.attributes["script"], g) {
		p.UndecidedReason = "the script of " + p.Program + " may run a command, or use a file"
	}
	switch key {
	case "cd":
		a.changeDir(p, g.operands, s)
	case "rm", "shred", "truncate":
		if slices.ContainsFunc(g.operands, matchesEverything) {
			p.RecursiveDelete = Yes
		}
	case "source", ".":
		if len(g.operands) == 0 || !g.operands[0].isLiteral() || strings.HasPrefix(g.operands[0].text, "/dev/") {
			p.UndecidedReason = "the script that it runs is known only when it does"
		}
	case "ln":
		if slices.ContainsFunc(g.operands, func(v value) bool { return hasElement(v.text, "..") }) {
			p.UndecidedReason = "the link may lead to another place than its text"
		}
	case "make", "gmake":
		for _, v := range g.operands {
			switch {
			case v.text == "install":
				p.System = Yes
			case v.kind == workspaceName:
				p.System = Maybe
			}
			if name, text, ok := strings.Cut(v.text, "="); ok {
				a.checkVariable(name, value{text: text, kind: v.kind}, true, s, c.withWrapper(p.Program))
			}
		}
	case "set":
		if g.hasFlag("o") && (len(g.operands) == 0 || !slices.Contains(shellSettings, g.operands[0].text)) {
			p.UndecidedReason = "it changes how the shell works"
		}
	case "read":
		for _, v := range g.operands {
			a.checkVariable(v.text, value{kind: unknown}, false, s, c.withWrapper(p.Program))
		}
	case "python", "pypy", "coverage":
		if at := slices.IndexFunc(g.operands, func(v value) bool { return path.Base(v.text) == "setup.py" }); at >= 0 {
			installs := func(v value) bool {
				return slices.Contains([]string{"install", "develop", "upload", "easy_install"}, v.text)
			}
			if slices.ContainsFunc(g.operands[at:], installs) {
				p.Network, p.System = Yes, Yes
			}
		}
		for _, module := range g.values["m"] {
			a.addModule(p, module, args, s, c)
		}
	case "git rm":
		if slices.ContainsFunc(g.operands, func(v value) bool { return strings.Contains(v.text, "*") }) {
			p.RecursiveDelete = Yes
		}
	case "cmake":
		if g.hasFlag("build") && slices.ContainsFunc(g.values["target"], func(v value) bool { return v.text == "install" }) {
			p.System = Yes
		}
	case "git clean":
		if !g.hasFlag("n", "dry-run") {
			p.RecursiveDelete = Yes
		}
	case "git checkout", "git restore", "git switch":
		if discardsChanges(key, g) {
			p.RecursiveDelete = Yes
		}
	case "git config":
		if n := len(g.operands); n > 2 || n == 2 && !harmlessGitSettings().MatchString(g.operands[0].text+"="+g.operands[1].text) {
			p.UndecidedReason = "it may have git run something later"
		}
	case "kill":
		if slices.ContainsFunc(g.operands, func(v value) bool { return !strings.HasPrefix(v.text, "%") }) {
			p.System = Yes
		}
	}
	isInside := !slices.ContainsFunc(p.Paths, func(q Path) bool { return q.Location != Inside })
	p.listing = spec.has("lists") && isInside && printsFileNames(key, g, c)
}

// addModule adds the effects of a module that Python runs: those of the program
// of its name, if the table has it.
func (a *analyzer) addModule(p *Part, module value, args []value, s *scope, c cmdContext) {
	if module.kind != known {
		p.UndecidedReason = "which module runs is known only when it does"
		return
	}
	at := slices.IndexFunc(args, func(v value) bool { return strings.HasSuffix(v.text, module.text) })
	key, rest := module.text, args[at+1:]
	spec, ok := programs()[key]
	if !ok {
		key, _, _ = strings.Cut(key, ".")
		spec, ok = programs()[key]
	}
	if inner := slices.IndexFunc(rest, func(v value) bool { return v.text == "-m" }); !ok && inner >= 0 && inner+1 < len(rest) {
		a.addModule(p, rest[inner+1], rest, s, c) // such as cProfile -m pip
	}
	if ok && spec.has("subcommands") {
		g := a.parseArguments(p, spec, rest, s, true)
		if key, spec, rest, ok = findSubcommand(key, g.operands); !ok {
			p.UndecidedReason = "mini does not know what this command of " + module.text + " does"
		}
	}
	if ok {
		a.addEffects(p, key, spec, rest, s, c)
	}
}

// printsFileNames reports whether a program that may print file names prints
// only those, given its arguments and input.
func printsFileNames(key string, g arguments, c cmdContext) bool {
	switch key {
	case "grep", "egrep", "fgrep", "rg":
		if g.hasFlag("l", "L", "files-with-matches", "files", "files-without-match") {
			return !g.hasFlag("label")
		}
		return c.names && len(g.operands) <= 1 && g.hasOnly("viEFPwxe")
	case "ls": // -a lists the directory above
		return g.hasOnly("1drtASRUXh")
	case "find":
		return !g.hasFlag("printf", "ls", "delete")
	case "git diff":
		return g.hasFlag("name-only") && !g.hasFlag("p", "u", "patch", "raw", "stat", "numstat", "summary")
	case "head", "tail", "sort", "uniq":
		return c.names && len(g.operands) == 0 && g.hasOnly("nurRqVf0123456789")
	}
	return key == "seq" || key == "git ls-files" || key == "fd" || key == "fdfind"
}

// matchesEverything reports whether the last element of a glob has only
// wildcards and dots, so that it may match all files of a directory.
func matchesEverything(v value) bool { return v.glob && wildcardsOnly().MatchString(path.Base(v.text)) }

var wildcardsOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\[[^\]]*\]|[*?.])+$`) })

// changeDir handles cd. It removes ".." from the text of a path before it
// follows symbolic links (as cd -L).
func (a *analyzer) changeDir(p *Part, operands []value, s *scope) {
	target := value{text: a.workspace.Home}
	if len(operands) > 0 {
		target = operands[0]
	}
	before := s.dirs
	if path.IsAbs(target.text) {
		before = []string{"/"}
	}
	if target.text == "" || target.text == "-" || target.kind == unknown {
		before = nil
	}
	s.dirs = nil
	for _, dir := range before {
		s.dirs = append(s.dirs, path.Join(dir, target.text))
	}
	p.Paths = append(p.Paths, a.locatePath(value{text: ".", kind: target.kind, glob: target.glob}, Reads, s.dirs))
	s.visited = slices.Concat(s.visited, s.dirs)
	if len(s.dirs) == 0 {
		s.visited = append(s.visited, "")
	}
}

// walkAssignment analyzes an assignment. isExported says that programs see it.
func (a *analyzer) walkAssignment(assign *syntax.Assign, isExported bool, s *scope, c cmdContext) {
	a.walkSubstitutions(assign, s, c)
	v := value{}
	switch {
	case assign.Name == nil:
		a.addUndecided(c, a.sourceText(assign), "which variable it sets is known only when it runs")
		return
	case assign.Naked:
		v.kind = unknown
	case assign.Value != nil:
		v = a.expandWord(assign.Value, s)
	}
	a.checkVariable(assign.Name.Value, v, isExported, s, c)
}

var (
	// harmlessVariables matches the environment variables that name neither
	// programs nor files. The values of harmlessCommands are harmless for
	// variables such as PAGER, and those of pathVariables are directories.
	harmlessVariables = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR|CI|DEBUG|VERBOSE|V|NODE_ENV|RUST_BACKTRACE` +
			`|PYTHON(UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|IOENCODING|UTF8|WARNINGS|FAULTHANDLER|DEVMODE)|DJANGO_SETTINGS_MODULE|GOOS|GOARCH|CGO_ENABLED` +
			`|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|GIT_TERMINAL_PROMPT|DEBIAN_FRONTEND|SOURCE_DATE_EPOCH|[A-Z]+_NUM_THREADS|CUDA_VISIBLE_DEVICES)$`)
	})
	harmlessCommands = []string{"", "cat", "true", ":"}
	pathVariables    = []string{"PYTHONPATH", "MYPYPATH"}
	// shellVariables matches the names of variables that only scripts use.
	shellVariables = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^_?[a-z][A-Za-z0-9_]*$`) })
)

// checkVariable adds a part if setting a variable may change what programs do.
func (a *analyzer) checkVariable(name string, v value, isExported bool, s *scope, c cmdContext) {
	inner := c.withWrapper(name + "=")
	switch {
	case harmlessVariables().MatchString(name) && !leavesDir(strings.TrimPrefix(v.text, ":")):
	case !isExported && shellVariables().MatchString(name) && !strings.HasSuffix(name, "_proxy"):
	case v.kind == known && slices.Contains(harmlessCommands, v.text) && (strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "EDITOR")):
	case slices.Contains(pathVariables, name):
		p := Part{Known: true, Via: inner.via, Start: c.start}
		for dir := range strings.SplitSeq(v.text, ":") {
			if at := a.locatePath(value{text: dir, kind: v.kind}, Reads, s.dirs); at.Location != Inside {
				p.Paths = append(p.Paths, at)
			}
		}
		if len(p.Paths) > 0 {
			a.addPart(p)
		}
	default:
		a.addUndecided(inner, name, "it sets "+name+", which may change what programs do")
	}
}
