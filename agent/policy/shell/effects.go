package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// effects notes what a program does, as far as its arguments tell.
func (r *reader) effects(p *Part, args []value, s *scope, c *context) {
	name := baseOf(p.Program)
	known := programs()[name]
	if p.Program == miniTool {
		known, args = toolCall(args)
	}
	a := r.arguments(p, known, args, s)
	p.Network = max(p.Network, known.network, subcommand(a, known.remote))
	p.System, p.Sudo = p.System.Or(known.system), p.Sudo.Or(known.sudo)
	p.RecursiveDelete = p.RecursiveDelete.Or(a.flag(known.deletesWith...))
	if a.flag(known.inPlaceWith...) != No {
		for i := range p.Paths {
			p.Paths[i].Mode = Writes
		}
	}
	with := a.flag(known.runsWith...)
	if known.runs || with == Yes || with == Maybe && known.text || r.scripted(known.script, a, args, c) {
		p.Undecided = p.Program + " may run a command, or use a file, that is not read"
	}
	switch name {
	case "cd", "pushd", "popd":
		r.changeFolder(p, args, s)
	case "rm":
		if slices.ContainsFunc(a.operands, everything) {
			p.RecursiveDelete = Yes
		}
	case "git":
		r.git(p, args, s)
	case "cmake":
		if len(args) > 0 && args[0].text == "-E" {
			p.RecursiveDelete = Yes // of its commands some do
		}
	case "kill":
		p.System = killsAll(args)
	case "python", "pypy":
		r.module(p, args)
	case "set":
		if slices.ContainsFunc(args, func(v value) bool { return v.text == "physical" }) {
			p.Undecided = "it changes how cd follows links"
		}
	}
	outside := false
	for _, q := range p.Paths {
		outside = outside || q.Where != Inside
		if q.Mode != Reads && q.Where != Inside && strings.HasPrefix(q.Text, "/dev/") {
			p.System = Yes
		}
	}
	p.listing = p.listing || known.lists && !outside && p.Network == No && p.Undecided == "" && namesOnly(name, a, c)
}

// namesOnly says that a program prints names of files, or passes them on.
func namesOnly(name string, a arguments, c *context) bool {
	switch name {
	case "grep", "egrep", "fgrep", "rg":
		names := a.flag("l", "L", "files-with-matches", "files", "files-without-match")
		return names == Yes || c.stdin == listed && len(a.operands) <= 1
	case "head", "tail", "sort", "uniq":
		return c.stdin == listed && len(a.operands) == 0
	}
	return name != "ls" || a.flag("l") == No
}

// everything says that a pattern is of all that is in a folder: it has no
// character that names must have.
func everything(v value) bool { return v.glob && wildcards().MatchString(path.Base(v.text)) }

var wildcards = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\[[^\]]*\]|[*?.])+$`) })

// killsAll says that kill may be told to end every process there is, or the first.
func killsAll(args []value) Answer {
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

// module is python -m: some use the network.
func (r *reader) module(p *Part, args []value) {
	for i, v := range args {
		name, ok := strings.CutPrefix(v.text, "-m")
		rest := args[i+1:]
		if v.kind != known || !ok || name == "" && len(rest) == 0 {
			continue
		}
		if name == "" {
			name, rest = rest[0].text, rest[1:]
		}
		var a arguments
		for _, w := range rest {
			if !strings.HasPrefix(w.text, "-") {
				a.operands = append(a.operands, w)
			}
		}
		module := programs()[name]
		p.Network = max(p.Network, module.network, subcommand(a, module.remote))
		return
	}
}

// changeFolder is cd and its kin, which take ".." out of the text of a path
// before they follow its links.
func (r *reader) changeFolder(p *Part, args []value, s *scope) {
	to := value{text: r.at.Home}
	if r.at.Home == "" {
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
		s.move() // back to where another cd was looked at
		return
	}
	if strings.HasPrefix(to.text, "-") {
		to.kind = unknown // it may be -P, which follows links first
	}
	if to.kind == unknown || len(before) == 0 && !path.IsAbs(to.text) {
		p.Paths = append(p.Paths, r.located(to, Reads, before))
		s.move()
		return
	}
	if path.IsAbs(to.text) {
		before = []string{"/"}
	}
	var dirs, shown []string
	for _, dir := range before {
		dirs = append(dirs, path.Join(dir, to.text))
		shown = append(shown, path.Join(dir, shownText(to.text)))
	}
	s.move(shown...)
	p.Paths = append(p.Paths, r.located(value{text: ".", kind: to.kind, glob: to.glob}, Reads, dirs))
}

// miniTool is the program by which commands ask mini itself for something.
const miniTool = "mini-tool"

// toolCall says what a call of mini-tool does with which of its arguments: its
// file tools read and write, a chain is read from a file, and what the others are
// given are words. Where the tool is not known, nothing is.
func toolCall(args []value) (program, []value) {
	if len(args) == 0 || !args[0].literal() {
		return program{}, args
	}
	rest := args[1:]
	switch args[0].text {
	case "read", "chain":
		return program{operands: Reads, values: []string{"offset", "limit"}}, rest
	case "write", "edit": // a file; then texts
		for i, v := range rest {
			if v.kind == unknown || !strings.HasPrefix(v.text, "-") {
				return program{operands: Writes}, rest[i : i+1]
			}
		}
		return program{operands: Writes}, nil
	}
	return program{text: true}, rest
}
