package shell

import (
	"path"
	"slices"
	"strings"
)

// git is about its subcommands.
func (r *reader) git(p *Part, args []value, s *scope) {
	p.Paths = nil // a branch is no path; what leads out of the workspace is
	rest := r.options(args, "cC", []string{"git-dir", "work-tree", "namespace", "exec-path", "config-env", "super-prefix"}, func(name string, v value) {
		if name == "C" || name == "git-dir" || name == "work-tree" {
			p.Paths = append(p.Paths, r.located(v, Uses, s.dirs))
		}
	})
	if len(rest) == 0 {
		return
	}
	name, more := rest[0].text, rest[1:]
	flags := r.arguments(&Part{}, program{text: true}, more, s)
	first := ""
	if len(flags.operands) > 0 {
		first = flags.operands[0].text
	}
	switch {
	case !rest[0].literal():
		p.Network, p.RecursiveDelete = Maybe, Maybe
	case slices.Contains(remoteGit, name),
		name == "remote" && slices.Contains([]string{"update", "show", "prune", "set-head"}, first),
		name == "submodule" && slices.Contains([]string{"update", "add"}, first),
		name == "archive" && flags.flags["remote"],
		name == "lfs" && slices.Contains([]string{"pull", "fetch", "push", "clone"}, first):
		p.Network = Yes
	case name == "clean":
		p.RecursiveDelete = Yes
		if flags.flag("n", "dry-run") == Yes {
			p.RecursiveDelete = No
		}
	case name == "rm":
		p.RecursiveDelete = flags.flag("r")
	case name == "reset":
		p.RecursiveDelete = flags.flag("hard")
	case name == "checkout" || name == "restore" || name == "switch":
		p.RecursiveDelete = r.discards(name, more, s) // work that no commit has
	case name == "stash" && (first == "drop" || first == "clear"):
		p.RecursiveDelete = Yes
	case name == "config":
		r.gitSetting(p, flags)
	case name == "worktree" && first == "remove":
		p.RecursiveDelete = Yes
	}
	p.listing = name == "ls-files" || (name == "diff" || name == "show") && flags.flags["name-only"]
	for i, v := range more {
		if i > 0 && slices.Contains([]string{"-m", "--message", "-F", "--author", "--grep", "--format", "--date", "-S", "-G", "-L", "--trailer"}, more[i-1].text) && more[i-1].text != "-F" {
			continue
		}
		switch {
		case looksLikePath(v) && v.text != "..", v.text == ".." && name != "log":
			p.Paths = append(p.Paths, r.located(v, Uses, s.dirs))
		case strings.HasPrefix(v.text, "--output="), strings.HasPrefix(v.text, "--separate-git-dir="), strings.HasPrefix(v.text, "--template="), strings.HasPrefix(v.text, "--prefix="):
			_, text, _ := strings.Cut(v.text, "=")
			p.Paths = append(p.Paths, r.located(value{text: text, kind: v.kind}, Uses, s.dirs))
		case v.kind == unknown && slices.Contains([]string{"clone", "init", "worktree", "archive", "bundle", "apply", "am"}, name):
			p.Paths = append(p.Paths, r.located(v, Uses, s.dirs))
		}
	}
}

// gitSetting is about git config: settings that git runs later, and those of all
// of a user's work.
func (r *reader) gitSetting(p *Part, flags arguments) {
	if flags.flags["global"] || flags.flags["system"] {
		p.Paths = append(p.Paths, Path{Text: "~/.gitconfig", Mode: Writes, Where: Outside})
	}
	operands := flags.operands
	if len(operands) > 0 && slices.Contains([]string{"set", "add"}, operands[0].text) {
		operands = operands[1:]
	}
	if len(operands) > 1 && (operands[0].kind == unknown || runningKeys.MatchString(operands[0].text)) && operands[0].text != "get" && operands[0].text != "unset" {
		p.Undecided = "it has git run something later"
	}
}

// discards says that git checkout and its kin overwrite files that they are not
// told one by one. A path without an ending may be a folder.
func (r *reader) discards(name string, args []value, s *scope) Answer {
	git := program{text: true}
	if name == "restore" {
		git.values, git.words = "s", []string{"source"}
	}
	flags := r.arguments(&Part{}, git, args, s)
	if name == "restore" && flags.flag("S", "staged") == Yes && flags.flag("W", "worktree") != Yes {
		return No // it is about the index alone
	}
	answer := No
	if name != "restore" {
		answer = flags.flag("f", "force", "discard-changes")
	}
	if flags.flag("pathspec-from-file") == Yes {
		answer = answer.Or(Maybe)
	}
	at := slices.IndexFunc(args, func(v value) bool { return v.text == "--" })
	made := flags.flag("b", "B", "c", "C", "orphan", "t", "track") == Yes || name == "switch"
	for i, v := range flags.operands {
		switch {
		case at >= 0 && !slices.ContainsFunc(args[at+1:], func(w value) bool { return w == v }):
			continue // a commit
		case v.kind == unknown && (name == "restore" || at >= 0):
			answer = answer.Or(Maybe)
		case strings.HasSuffix(v.text, "/"), strings.HasPrefix(v.text, ":"), v.text == ".", v.text == "..", strings.ContainsAny(v.text, "*?["):
			answer = Yes
		case v.kind == known && !strings.Contains(strings.TrimLeft(path.Base(v.text), "."), ".") && (name == "restore" || at >= 0 || i > 0 && !made):
			answer = answer.Or(Maybe)
		}
	}
	return answer
}
