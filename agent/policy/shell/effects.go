package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// addEffects sets what a program does, as far as its arguments tell.
func (r *analyzer) addEffects(p *Part, args []value, s *scope, c *cmdContext) {
	name := tableName(p.Program)
	known := programs()[name]
	if p.Program == miniTool {
		known, args = parseMiniTool(args)
	}
	a := r.parseArguments(p, known, args, s)
	p.Network = max(p.Network, known.network, hasSubcommand(a, known.networkCommands))
	p.System, p.Sudo = p.System.Or(known.system), p.Sudo.Or(known.sudo)
	p.RecursiveDelete = p.RecursiveDelete.Or(a.hasFlag(known.deletesWith...))
	if a.hasFlag(known.inPlaceWith...) != No {
		for i := range p.Paths {
			p.Paths[i].Mode = Writes
		}
	}
	with := a.hasFlag(known.runsWith...)
	if known.runsAlways || with == Yes || with == Maybe && known.noPaths || r.scriptMayRun(known.script, a, args, c) {
		p.Undecided = p.Program + " may run a command, or use a file, that is not read"
	}
	switch name {
	case "cd", "pushd", "popd":
		r.changeDir(p, args, s)
	case "rm":
		if slices.ContainsFunc(a.operands, matchesEverything) {
			p.RecursiveDelete = Yes
		}
	case "git":
		r.addGitEffects(p, args, s)
	case "cmake":
		if len(args) > 0 && args[0].text == "-E" {
			p.RecursiveDelete = Yes // some of its subcommands delete directories
		}
	case "kill":
		p.System = killsEverything(args)
	case "python", "pypy":
		r.addModuleEffects(p, args)
	case "set":
		if slices.ContainsFunc(args, func(v value) bool { return v.text == "physical" }) {
			p.Undecided = "it changes how cd follows links"
		}
	}
	outside := false
	for _, q := range p.Paths {
		outside = outside || q.Location != Inside
		if q.Mode != Reads && q.Location != Inside && strings.HasPrefix(q.Text, "/dev/") {
			p.System = Yes
		}
	}
	p.listing = p.listing || known.listsFiles && !outside && p.Network == No && p.Undecided == "" && printsFileNames(name, a, c)
}

// printsFileNames reports whether a program prints only file names, given its
// arguments and input.
func printsFileNames(name string, a parsedArguments, c *cmdContext) bool {
	switch name {
	case "grep", "egrep", "fgrep", "rg":
		names := a.hasFlag("l", "L", "files-with-matches", "files", "files-without-match")
		return names == Yes || c.stdin == stdinFileNames && len(a.operands) <= 1
	case "head", "tail", "sort", "uniq":
		return c.stdin == stdinFileNames && len(a.operands) == 0
	}
	return name != "ls" || a.hasFlag("l") == No
}

// matchesEverything reports whether a word is a glob that matches all files of
// a directory: it has only wildcards.
func matchesEverything(v value) bool { return v.glob && wildcardsOnly().MatchString(path.Base(v.text)) }

var wildcardsOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\[[^\]]*\]|[*?.])+$`) })

// killsEverything reports whether kill signals all processes or PID 1.
func killsEverything(args []value) Tristate {
	answer := No
	for i, v := range args {
		switch {
		case v.kind == unknown:
			answer = answer.Or(Maybe)
		case v.text == "1", v.text == "-1" && (i > 0 || len(args) == 1):
			answer = Yes
		}
	}
	return answer
}

// addModuleEffects handles python -m: some modules use the network.
func (r *analyzer) addModuleEffects(p *Part, args []value) {
	for i, v := range args {
		name, ok := strings.CutPrefix(v.text, "-m")
		rest := args[i+1:]
		if v.kind != known || !ok || name == "" && len(rest) == 0 {
			continue
		}
		if name == "" {
			name, rest = rest[0].text, rest[1:]
		}
		var a parsedArguments
		for _, w := range rest {
			if !strings.HasPrefix(w.text, "-") {
				a.operands = append(a.operands, w)
			}
		}
		module := programs()[name]
		p.Network = max(p.Network, module.network, hasSubcommand(a, module.networkCommands))
		return
	}
}

// changeDir handles cd, pushd and popd. They remove ".." from the text of a
// path before they follow symbolic links (as cd -L).
func (r *analyzer) changeDir(p *Part, args []value, s *scope) {
	to := value{text: r.workspace.Home}
	if r.workspace.Home == "" {
		to.kind = unknown
	}
	for len(args) > 0 && slices.Contains([]string{"-L", "-e", "--"}, args[0].text) {
		args = args[1:]
	}
	if len(args) > 0 {
		to = args[0]
	}
	before := s.dirs
	if p.Program == "popd" || p.Program == "pushd" && len(args) == 0 || to.text == "-" {
		s.changeDirs() // the previous directory is unknown
		return
	}
	if strings.HasPrefix(to.text, "-") {
		to.kind = unknown // may be -P, which follows links first
	}
	if to.kind == unknown || len(before) == 0 && !path.IsAbs(to.text) {
		p.Paths = append(p.Paths, r.locatePath(to, Reads, before))
		s.changeDirs()
		return
	}
	if path.IsAbs(to.text) {
		before = []string{"/"}
	}
	var dirs, shown []string
	for _, dir := range before {
		dirs = append(dirs, path.Join(dir, to.text))
		shown = append(shown, path.Join(dir, displayText(to.text)))
	}
	s.changeDirs(shown...)
	p.Paths = append(p.Paths, r.locatePath(value{text: ".", kind: to.kind, glob: to.glob}, Reads, dirs))
}

// miniTool is the program by which commands call mini's tools.
const miniTool = "mini-tool"

// parseMiniTool describes a call of mini-tool: its file tools read and write,
// chain reads a file, and the other tools take texts. An unknown tool has no
// known effects.
func parseMiniTool(args []value) (program, []value) {
	if len(args) == 0 || !args[0].isLiteral() {
		return program{}, args
	}
	rest := args[1:]
	switch args[0].text {
	case "read", "chain":
		return program{operands: Reads, values: []string{"offset", "limit"}}, rest
	case "write", "edit": // the first operand is a file
		for i, v := range rest {
			if v.kind == unknown || !strings.HasPrefix(v.text, "-") {
				return program{operands: Writes}, rest[i : i+1]
			}
		}
		return program{operands: Writes}, nil
	}
	return program{noPaths: true}, rest
}
