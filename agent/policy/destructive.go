package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
)

// ruleDestructive is the value of Decision.Rule for commands that are refused
// because they destroy what cannot be restored.
const ruleDestructive = "destructive"

// refuse returns a denial if a part destroys what cannot be restored.
func refuse(parts []shell.Part, workspace shell.Workspace) (agent.Decision, bool) {
	for i := range parts {
		if what := destroys(&parts[i], workspace); what != "" {
			r := &rule{action: agent.Deny, Rule: Rule{Reason: what + "; only the option --allow-destructive of mini lets it run"}}
			return agent.Decision{Action: agent.Deny, By: ByRule, Rule: ruleDestructive, Reason: explain(r, &parts[i], false)}, true
		}
	}
	return agent.Decision{}, false
}

var (
	formatters = []string{"mke2fs", "mkdosfs", "mkntfs", "mkswap", "wipefs", "blkdiscard"}
	// disks matches the device files of disks and partitions.
	disks = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^/dev/(sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk|dm-\d|mapper/|md\d|loop\d|nbd\d)`)
	})
	// allFiles matches the last element of a pattern for all files of a directory.
	allFiles = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\.|\.\[[!^]\.\])?\*$`) })
)

// destroys says what a part destroys for good, as far as the words of the command
// tell: the root or home directory, a directory around the workspace, a disk, or
// the history of another repository. It returns "" for other parts.
func destroys(p *shell.Part, w shell.Workspace) string {
	switch {
	case p.IsForkBomb:
		return "it is a fork bomb"
	case p.Known && (p.Program == "mkfs" || strings.HasPrefix(p.Program, "mkfs.") || slices.Contains(formatters, p.Program)):
		return "it formats a disk"
	case p.Known && p.Program == "git" && isForcePush(p.Args):
		return "it overwrites the history of another repository"
	}
	for _, q := range p.Paths {
		if q.Mode != shell.Writes || q.Location == shell.Unknown {
			continue
		}
		if disks().MatchString(q.Text) {
			return "it overwrites the disk " + q.Text
		}
		target := q.Text
		if allFiles().MatchString(path.Base(target)) {
			target = path.Dir(target)
		}
		isAround := func(dir string) bool { return strings.HasPrefix(dir+"/", strings.TrimSuffix(target, "/")+"/") }
		if p.RecursiveDelete == shell.Yes && target != w.Dir && (isAround(w.Dir) || isAround(w.Home)) {
			return "it deletes " + target
		}
	}
	return ""
}

// isForcePush reports whether the arguments of git are those of a push that
// overwrites commits.
func isForcePush(args []shell.Word) bool {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at].Text, "-") { // options of git, two of which have a value
		at += 1 + strings.Count("-C -c", args[at].Text)
	}
	return at < len(args) && args[at].Text == "push" && slices.ContainsFunc(args[at:], func(w shell.Word) bool {
		isShort := strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "f")
		return w.Known && (isShort || strings.HasPrefix(w.Text, "+") || strings.HasPrefix(w.Text, "--force") || len(w.Text) > 2 && strings.HasPrefix("--mirror", w.Text))
	})
}
