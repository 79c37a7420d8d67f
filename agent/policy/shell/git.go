package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// remoteGit are the subcommands of git that use the network.
var remoteGit = []string{
	"clone", "fetch", "pull", "push", "ls-remote", "fetch-pack", "send-pack", "request-pull", "send-email", "svn", "p4",
	"daemon", "instaweb", "remote-http", "remote-https", "credential", "remote update", "remote show", "remote prune",
	"remote set-head", "submodule update", "submodule add", "lfs pull", "lfs fetch", "lfs push", "lfs clone",
}

// runningGit are those that run what they are given.
var runningGit = []string{"bisect run", "submodule foreach", "filter-branch"}

// runningKeys are settings of git whose values it runs.
var runningKeys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(include(if\..*)?\.path$` +
		`|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath)|pager\..*|sequence\.editor` +
		`|diff\.external|diff\..*\.(command|textconv)|alias\..*|credential\.helper|merge\..*\.driver` +
		`|filter\..*|difftool\..*|mergetool\..*|gpg\.program)$`)
})

// git is about its subcommands.
func (r *reader) git(p *Part, args []value, s *scope) {
	p.Paths = nil // a branch is no path; what leads out of the workspace is
	const options = "c C git-dir work-tree namespace exec-path config-env super-prefix"
	rest := r.options(args, options, func(name string, v value) {
		switch name {
		case "C", "git-dir", "work-tree":
			p.Paths = append(p.Paths, r.located(v, Uses, s.dirs))
		case "c":
			key, text, _ := strings.Cut(v.text, "=")
			if v.kind != known || runningKeys().MatchString(key) && !slices.Contains([]string{"cat", "true", ":"}, text) {
				p.Undecided = "a setting of git's may run something"
			}
		case "exec-path", "config-env":
			if v.text != "" {
				p.Undecided = "it may change what git runs"
			}
		}
	})
	if rest == nil {
		p.Undecided = "what git does is known only when it runs"
	}
	if len(rest) == 0 {
		return
	}
	name, more := rest[0].text, rest[1:]
	a := r.arguments(&Part{}, program{text: true, values: gitValues[name]}, more, s)
	first := ""
	if len(a.operands) > 0 {
		first = a.operands[0].text
	}
	both := name + " " + first
	switch {
	case !rest[0].literal():
		p.Network, p.RecursiveDelete = Maybe, Maybe
	case slices.Contains(remoteGit, name) || slices.Contains(remoteGit, both) || name == "archive" && a.flags["remote"]:
		p.Network = Yes
	case slices.Contains(runningGit, name), slices.Contains(runningGit, both),
		name == "rebase" && a.flag("x", "exec") == Yes, name == "difftool" && a.flag("x", "extcmd") == Yes,
		name == "grep" && a.flag("O", "open-files-in-pager") == Yes:
		p.Undecided = "git " + name + " runs a program"
	case name == "clean":
		p.RecursiveDelete = a.flag("n", "dry-run").Not()
	case name == "rm":
		p.RecursiveDelete = a.flag("r")
	case name == "reset":
		p.RecursiveDelete = a.flag("hard")
	case name == "checkout" || name == "restore" || name == "switch":
		p.RecursiveDelete = discards(name, a, more) // work that no commit has
	case both == "stash drop" || both == "stash clear" || both == "worktree remove":
		p.RecursiveDelete = Yes
	case name == "config":
		gitSetting(p, a)
	}
	p.listing = p.Undecided == "" && (name == "ls-files" || (name == "diff" || name == "show") && a.flags["name-only"])
	r.gitPaths(p, name, more, s)
}

// gitValues are the options of subcommands that take a value.
var gitValues = map[string][]string{"restore": {"s", "source"}, "rebase": {"x", "exec"}}

// pathGit are subcommands of which any argument may be a path.
var pathGit = []string{"clone", "init", "worktree", "archive", "bundle", "apply", "am"}

// gitPaths notes what leads out of the workspace.
func (r *reader) gitPaths(p *Part, name string, args []value, s *scope) {
	texts := []string{"-m", "--message", "--author", "--grep", "--format", "--date", "-S", "-G", "-L", "--trailer"}
	for i, v := range args {
		if i > 0 && slices.Contains(texts, args[i-1].text) {
			continue
		}
		option, text, _ := strings.Cut(v.text, "=")
		switch {
		case looksLikePath(v) && (v.text != ".." || name != "log"),
			v.kind == unknown && slices.Contains(pathGit, name):
			p.Paths = append(p.Paths, r.located(v, Uses, s.dirs))
		case text != "" && slices.Contains([]string{"--output", "--separate-git-dir", "--template", "--prefix"}, option):
			p.Paths = append(p.Paths, r.located(value{text: text, kind: v.kind}, Uses, s.dirs))
		}
	}
}

// gitSetting is about git config: settings that git runs later, and those of all
// of a user's work.
func gitSetting(p *Part, a arguments) {
	if a.flags["global"] || a.flags["system"] {
		p.Paths = append(p.Paths, Path{Text: "~/.gitconfig", Mode: Writes, Where: Outside})
	}
	operands := a.operands
	if len(operands) > 0 && slices.Contains([]string{"set", "add"}, operands[0].text) {
		operands = operands[1:]
	}
	if len(operands) > 1 && (operands[0].kind == unknown || runningKeys().MatchString(operands[0].text)) {
		p.Undecided = "it has git run something later"
	}
}

// discards says that git checkout and its kin overwrite files that they are not
// told one by one. A path without an ending may be a folder.
func discards(name string, a arguments, args []value) Answer {
	restores := name == "restore"
	if restores && a.flag("S", "staged") == Yes && a.flag("W", "worktree") != Yes {
		return No // it is about the index alone
	}
	answer := No
	if !restores {
		answer = a.flag("f", "force", "discard-changes")
	}
	if a.flag("pathspec-from-file") == Yes {
		answer = Yes
	}
	at := slices.IndexFunc(args, func(v value) bool { return v.text == "--" })
	branch := name == "switch" || a.flag("b", "B", "c", "C", "orphan", "t", "track") == Yes
	for i, v := range a.operands {
		file := restores || at >= 0 || i > 0 && !branch
		switch {
		case at >= 0 && !slices.Contains(args[at+1:], v):
			continue // a commit
		case v.kind == unknown && (restores || at >= 0):
			answer = answer.Or(Maybe)
		case strings.HasSuffix(v.text, "/"), strings.HasPrefix(v.text, ":"),
			v.text == ".", v.text == "..", strings.ContainsAny(v.text, "*?["):
			answer = Yes
		case v.kind == known && file && !strings.Contains(strings.TrimLeft(path.Base(v.text), "."), "."):
			answer = answer.Or(Maybe)
		}
	}
	return answer
}
