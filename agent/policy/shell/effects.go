package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// addEffects sets the properties of a program's part, as far as the arguments
// determine them.
func (r *analyzer) addEffects(p *Part, args []value, s *scope, c *cmdContext) {
	name := tableName(p.Program)
	spec := programs()[name]
	if p.Program == miniTool {
		spec, args = parseMiniTool(args)
	}
	a := r.parseArguments(p, spec, args, s)
	p.Network = max(p.Network, spec.network, hasSubcommand(a, spec.networkCommands))
	p.System, p.Sudo = p.System.Or(spec.system), p.Sudo.Or(spec.sudo)
	p.RecursiveDelete = p.RecursiveDelete.Or(a.hasFlag(spec.deletesWith...))
	if a.hasFlag(spec.inPlaceWith...) != No {
		for i := range p.Paths {
			p.Paths[i].Mode = Writes
		}
	}
	runs := a.hasFlag(spec.runsWith...)
	if spec.runsAlways || runs == Yes || runs == Maybe && spec.noPaths || r.scriptMayRun(spec.scriptLanguage, a, args, c) {
		p.UndecidedReason = p.Program + " may run a command, or use a file, that is not read"
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
			p.RecursiveDelete = Yes // some cmake -E subcommands delete directories
		}
	case "kill":
		p.System = killsEverything(args)
	case "python", "pypy":
		r.addModuleEffects(p, args)
	case "set":
		if slices.ContainsFunc(args, func(v value) bool { return v.text == "physical" }) {
			p.UndecidedReason = "it changes how cd follows links"
		}
	}
	outside := false
	for _, q := range p.Paths {
		outside = outside || q.Location != Inside
		if q.Mode != Reads && q.Location != Inside && strings.HasPrefix(q.Text, "/dev/") {
			p.System = Yes
		}
	}
	p.listing = p.listing || spec.listsFiles && !outside && p.Network == No && p.UndecidedReason == "" && printsFileNames(name, a, c)
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

// matchesEverything reports whether the last element of a glob has only
// wildcards and dots, so that it may match all files of a directory.
func matchesEverything(v value) bool { return v.glob && wildcardsOnly().MatchString(path.Base(v.text)) }

var wildcardsOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\[[^\]]*\]|[*?.])+$`) })

// killsEverything reports whether the arguments of kill include all processes
// (-1) or PID 1.
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
	target := value{text: r.workspace.Home}
	if r.workspace.Home == "" {
		target.kind = unknown
	}
	for len(args) > 0 && slices.Contains([]string{"-L", "-e", "--"}, args[0].text) {
		args = args[1:]
	}
	if len(args) > 0 {
		target = args[0]
	}
	before := s.dirs
	if p.Program == "popd" || p.Program == "pushd" && len(args) == 0 || target.text == "-" {
		s.changeDirs() // the previous directory is unknown
		return
	}
	if strings.HasPrefix(target.text, "-") {
		target.kind = unknown // may be -P, which follows links first
	}
	if target.kind == unknown || len(before) == 0 && !path.IsAbs(target.text) {
		p.Paths = append(p.Paths, r.locatePath(target, Reads, before))
		s.changeDirs()
		return
	}
	if path.IsAbs(target.text) {
		before = []string{"/"}
	}
	var dirs, displayed []string
	for _, dir := range before {
		dirs = append(dirs, path.Join(dir, target.text))
		displayed = append(displayed, path.Join(dir, displayText(target.text)))
	}
	s.changeDirs(displayed...)
	p.Paths = append(p.Paths, r.locatePath(value{text: ".", kind: target.kind, glob: target.glob}, Reads, dirs))
}

// miniTool is the program by which commands call mini's tools.
const miniTool = "mini-tool"

// parseMiniTool returns the effects and the arguments of a mini-tool call. read
// and chain read files, write and edit write them, and other tools take no
// paths. If the tool's name is known only at run time, the effects are unknown.
func parseMiniTool(args []value) (program, []value) {
	if len(args) == 0 || !args[0].isLiteral() {
		return program{}, args
	}
	rest := args[1:]
	switch args[0].text {
	case "read", "chain":
		return program{operands: Reads, valueOptions: []string{"offset", "limit"}}, rest
	case "write", "edit": // only the first operand is a file
		for i, v := range rest {
			if v.kind == unknown || !strings.HasPrefix(v.text, "-") {
				return program{operands: Writes}, rest[i : i+1]
			}
		}
		return program{operands: Writes}, nil
	}
	return program{noPaths: true}, rest
}
