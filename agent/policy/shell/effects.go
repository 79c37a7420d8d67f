package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// effects notes what a program does, as far as its arguments tell.
func (r *reader) effects(p *Part, args []value, s *scope, c *context) {
	known := programs[baseOf(p.Program)]
	if p.Program == miniTool {
		known, args = asked(args)
	}
	r.effectsOf(p, known, args, s, c)
}

func (r *reader) effectsOf(p *Part, known program, args []value, s *scope, c *context) {
	a := r.arguments(p, known, args, s)
	p.Network, p.System, p.Sudo = p.Network.Or(known.network), p.System.Or(known.system), p.Sudo.Or(known.sudo)
	p.Network = p.Network.Or(subcommand(a, known.remote))
	if len(known.apart) > 0 && subcommand(a, known.apart) == Yes && len(a.operands) > 1 && !slices.Contains([]string{"s", "sh", "show", "ls", "list", "get"}, a.operands[1].text) {
		p.System = Yes
	}
	switch name := baseOf(p.Program); {
	case name == "cd" || name == "pushd" || name == "popd":
		r.changeFolder(p, args, s)
	case name == "rm" || name == "grm":
		p.RecursiveDelete = p.RecursiveDelete.Or(a.flag("r", "R", "recursive"))
		if slices.ContainsFunc(a.operands, everything) {
			p.RecursiveDelete = Yes
		}
	case name == "git":
		r.git(p, args, s)
	case name == "sed" || name == "gsed":
		r.scripts(p, "sed", args, s)
		if a.flag("i", "in-place") != No {
			p.all(Writes)
		}
	case name == "awk" || name == "gawk" || name == "mawk" || name == "nawk":
		r.scripts(p, "awk", args, s)
	case name == "sort" && a.flag("compress-program") == Yes, name == "zip" && a.flags["T"] && a.unzips():
		p.Undecided = name + " runs a program that is not read"
	case name == "zip" && (a.flags["m"] || a.flags["move"]), name == "cmake" && a.flags["E"] && len(a.operands) > 0 && strings.HasPrefix(a.operands[0].text, "r"):
		p.RecursiveDelete = Yes
	case editors[name] && r.edits(a, c):
		p.Undecided = name + " is given commands that are not read"
	case name == "sqlite" && (slices.ContainsFunc(args, func(v value) bool { return sqlRuns.MatchString(v.text) }) || c.stdin == script && sqlRuns.MatchString(c.input)):
		p.Undecided = "sqlite3 runs a command that is not read"
	case name == "rsync" || name == "scp":
		r.copies(p, a)
	case name == "dd":
		r.dd(p, args, s)
	case name == "kill":
		p.System = p.System.Or(killsAll(args))
	case name == "tar" || name == "bsdtar" || name == "gtar":
		r.tar(p, a)
	case name == "python" || name == "pypy":
		r.module(p, args)
	case name == "perl" && a.flag("i") != No:
		p.all(Writes)
	case name == "hash" && a.flag("p") != No, name == "enable" && a.flag("f") != No:
		p.Undecided = "it changes what the name of a program stands for"
	case name == "mkfs" || strings.HasPrefix(p.Program, "mkfs."):
		p.System = Yes
	case name == "jobs" && a.flag("x") != No, (name == "mapfile" || name == "complete" || name == "compgen") && a.flag("C") != No, name == "bind" && a.flag("x") != No,
		slices.Contains([]string{"test", "[", "read", "unset", "wait"}, name) && subscripts(args), name == "printf" && a.flags["v"] && subscripts(args):
		p.Undecided = "it runs a command that is not read"
	case name == "make" || name == "gmake":
		for _, v := range a.operands {
			if strings.HasPrefix(v.text, "SHELL=") {
				p.Undecided = "it changes the shell that make runs"
			}
		}
	}
	inside := !slices.ContainsFunc(p.Paths, func(q Path) bool { return q.Where != Inside })
	p.listing = p.listing || known.quiet && inside && p.Network == No && namesOnly(p.Program, a, c)
}

// namesOnly says that a program prints names of files, or passes them on.
func namesOnly(name string, a arguments, c *context) bool {
	switch name {
	case "grep", "egrep", "fgrep", "rg":
		return a.flag("l", "L", "files-with-matches", "files", "files-without-match") == Yes || c.stdin == listed && len(a.operands) <= 1
	case "head", "tail", "sort", "uniq":
		return c.stdin == listed && len(a.operands) == 0
	case "ls", "fd", "seq":
		return a.flag("l") == No || name != "ls"
	}
	return false
}

// all turns reading into another mode.
func (p *Part) all(mode Mode) {
	for i := range p.Paths {
		p.Paths[i].Mode = mode
	}
}

// subscripts says that an argument, or the value of an option, may be an element
// of an array whose number is made by a command.
func subscripts(args []value) bool {
	return slices.ContainsFunc(args, func(v value) bool { return subscript.MatchString(v.text) })
}

var subscript = regexp.MustCompile("^-?[A-Za-z_][A-Za-z0-9_]*\\[.*(\\$\\(|`)")

// everything says that a pattern is of all that is in a folder: it has no
// character that names must have.
func everything(v value) bool { return v.glob && wildcards.MatchString(path.Base(v.text)) }

var wildcards = regexp.MustCompile(`^(\[[^\]]*\]|[*?.])+$`)

// killsAll says that kill is told to end every process there is.
func killsAll(args []value) Answer {
	answer := No
	for i, v := range args {
		switch {
		case v.kind == unknown:
			answer = answer.Or(Maybe)
		case v.text == "-1" && (i > 0 || len(args) == 1), v.text == "1" && i > 0, v.text == "1" && len(args) == 1:
			if i == 0 || args[i-1].text != "-s" && args[i-1].text != "-n" && args[i-1].text != "-l" {
				answer = Yes
			}
		}
	}
	return answer
}

// editors are programs that edit by commands, some of which run others.
var editors = map[string]bool{"vi": true, "vim": true, "nvim": true, "ex": true, "ed": true, "red": true, "emacs": true, "man": true, "gdb": true, "expect": true, "less": true}

// edits says that an editor is given commands that may do more than edit.
func (r *reader) edits(a arguments, c *context) bool {
	for _, name := range []string{"c", "cmd", "S", "sc", "eval", "batch", "load", "P", "pager", "ex", "x", "command", "eval-command"} {
		if a.flags[name] {
			return true
		}
	}
	for _, v := range a.operands {
		if len(v.text) > 1 && v.text[0] == '+' && strings.Trim(v.text, "+0123456789gGF") != "" {
			return true
		}
	}
	return c.stdin == script && edRuns.MatchString(c.input)
}

var (
	// edRuns are lines that have ed run something, or use another file.
	edRuns  = regexp.MustCompile(`(?m)^[0-9,.$%; ]*(!|[wWreEf] +(!|/|~|\.\.))`)
	sqlRuns = regexp.MustCompile(`(?i)(^|\n)\s*\.(shell|system|once|output|excel|import +['"]?\|)|\bedit\(|load_extension`)
)

// module is python -m: some use the network.
func (r *reader) module(p *Part, args []value) {
	for i, v := range args {
		name, attached := strings.CutPrefix(v.text, "-m")
		rest := args[i+1:]
		switch {
		case v.kind != known || !attached || name == "" && len(rest) == 0:
			continue
		case name == "":
			name, rest = rest[0].text, rest[1:]
		}
		switch name {
		case "pip", "uv", "pipx", "poetry", "conda":
			var a arguments
			for _, w := range rest {
				if !strings.HasPrefix(w.text, "-") {
					a.operands = append(a.operands, w)
				}
			}
			p.Network = p.Network.Or(subcommand(a, programs[name].remote))
		case "http.server", "SimpleHTTPServer", "smtplib", "ftplib", "telnetlib", "ensurepip":
			p.Network = Yes
		}
		return
	}
}
