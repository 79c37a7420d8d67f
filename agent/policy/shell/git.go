package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// gitNetworkCommands are the git subcommands that use the network.
var gitNetworkCommands = []string{
	"clone", "fetch", "pull", "push", "ls-remote", "fetch-pack", "send-pack", "request-pull", "send-email", "svn", "p4",
	"daemon", "instaweb", "remote-http", "remote-https", "credential", "remote update", "remote show", "remote prune",
	"remote set-head", "submodule update", "submodule add", "lfs pull", "lfs fetch", "lfs push", "lfs clone",
}

// gitExecCommands are the git subcommands that run their arguments.
var gitExecCommands = []string{"bisect run", "submodule foreach", "filter-branch"}

// gitExecKeys matches git settings whose values git runs, or which include other
// settings.
var gitExecKeys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(include(if\..*)?\.path$` +
		`|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath)|pager\..*|sequence\.editor` +
		`|diff\.external|diff\..*\.(command|textconv)|alias\..*|credential\.helper|merge\..*\.driver` +
		`|filter\..*|difftool\..*|mergetool\..*|gpg\.program)$`)
})

// addGitEffects sets the properties of a git command according to its
// subcommand.
func (r *analyzer) addGitEffects(p *Part, args []value, s *scope) {
	p.Paths = nil // branches are not paths; addGitPaths adds paths that leave the workspace
	const options = "c C git-dir work-tree namespace exec-path config-env super-prefix"
	rest := r.skipOptions(args, options, func(name string, v value) {
		switch name {
		case "C", "git-dir", "work-tree":
			p.Paths = append(p.Paths, r.locatePath(v, Uses, s.dirs))
		case "c":
			key, text, _ := strings.Cut(v.text, "=")
			if v.kind != known || gitExecKeys().MatchString(key) && !slices.Contains([]string{"cat", "true", ":"}, text) {
				p.UndecidedReason = "a setting of git's may run something"
			}
		case "exec-path", "config-env":
			if v.text != "" {
				p.UndecidedReason = "it may change what git runs"
			}
		}
	})
	if rest == nil {
		p.UndecidedReason = "what git does is known only when it runs"
	}
	if len(rest) == 0 {
		return
	}
	name, subArgs := rest[0].text, rest[1:]
	a := r.parseArguments(&Part{}, program{noPaths: true, valueOptions: gitValueOptions[name]}, subArgs, s)
	firstOperand := ""
	if len(a.operands) > 0 {
		firstOperand = a.operands[0].text
	}
	subcommand := name + " " + firstOperand
	switch {
	case !rest[0].isLiteral():
		p.Network, p.RecursiveDelete = Maybe, Maybe
	case slices.Contains(gitNetworkCommands, name) || slices.Contains(gitNetworkCommands, subcommand) || name == "archive" && a.flags["remote"]:
		p.Network = Yes
	case slices.Contains(gitExecCommands, name), slices.Contains(gitExecCommands, subcommand),
		name == "rebase" && a.hasFlag("x", "exec") == Yes, name == "difftool" && a.hasFlag("x", "extcmd") == Yes,
		name == "grep" && a.hasFlag("O", "open-files-in-pager") == Yes:
		p.UndecidedReason = "git " + name + " runs a program"
	case name == "clean":
		p.RecursiveDelete = a.hasFlag("n", "dry-run").Not()
	case name == "rm":
		p.RecursiveDelete = a.hasFlag("r")
	case name == "reset":
		p.RecursiveDelete = a.hasFlag("hard")
	case name == "checkout" || name == "restore" || name == "switch":
		p.RecursiveDelete = discardsChanges(name, a, subArgs)
	case subcommand == "stash drop" || subcommand == "stash clear" || subcommand == "worktree remove":
		p.RecursiveDelete = Yes
	case name == "config":
		addGitConfigEffects(p, a)
	}
	p.listing = p.UndecidedReason == "" && (name == "ls-files" || (name == "diff" || name == "show") && a.flags["name-only"])
	r.addGitPaths(p, name, subArgs, s)
}

// gitValueOptions are the options of subcommands that take a value.
var gitValueOptions = map[string][]string{"restore": {"s", "source"}, "rebase": {"x", "exec"}}

// gitPathCommands are subcommands whose arguments may all be paths.
var gitPathCommands = []string{"clone", "init", "worktree", "archive", "bundle", "apply", "am"}

// addGitPaths adds the arguments that may be paths outside the workspace.
func (r *analyzer) addGitPaths(p *Part, name string, args []value, s *scope) {
	textOptions := []string{"-m", "--message", "--author", "--grep", "--format", "--date", "-S", "-G", "-L", "--trailer"}
	for i, v := range args {
		if i > 0 && slices.Contains(textOptions, args[i-1].text) {
			continue
		}
		option, text, _ := strings.Cut(v.text, "=")
		switch {
		case looksLikePath(v) && (v.text != ".." || name != "log"),
			v.kind == unknown && slices.Contains(gitPathCommands, name):
			p.Paths = append(p.Paths, r.locatePath(v, Uses, s.dirs))
		case text != "" && slices.Contains([]string{"--output", "--separate-git-dir", "--template", "--prefix"}, option):
			p.Paths = append(p.Paths, r.locatePath(value{text: text, kind: v.kind}, Uses, s.dirs))
		}
	}
}

// addGitConfigEffects handles git config. A setting whose value git runs makes
// the part undecided. --global and --system write outside the workspace.
func addGitConfigEffects(p *Part, a parsedArguments) {
	if a.flags["global"] || a.flags["system"] {
		p.Paths = append(p.Paths, Path{Text: "~/.gitconfig", Mode: Writes, Location: Outside})
	}
	operands := a.operands
	if len(operands) > 0 && slices.Contains([]string{"set", "add"}, operands[0].text) {
		operands = operands[1:]
	}
	if len(operands) > 1 && (operands[0].kind == unknown || gitExecKeys().MatchString(operands[0].text)) {
		p.UndecidedReason = "it has git run something later"
	}
}

// discardsChanges reports whether git checkout, restore or switch overwrites
// changed files that are not named one by one. A path without a file extension
// may be a directory.
func discardsChanges(name string, a parsedArguments, args []value) Tristate {
	restores := name == "restore"
	if restores && a.hasFlag("S", "staged") == Yes && a.hasFlag("W", "worktree") != Yes {
		return No // changes only the index
	}
	answer := No
	if !restores {
		answer = a.hasFlag("f", "force", "discard-changes")
	}
	if a.hasFlag("pathspec-from-file") == Yes {
		answer = Yes
	}
	at := slices.IndexFunc(args, func(v value) bool { return v.text == "--" })
	branch := name == "switch" || a.hasFlag("b", "B", "c", "C", "orphan", "t", "track") == Yes
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
