package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// harmlessGitSettings matches the settings of git, as KEY=VALUE, that make it
// neither run nor include anything.
var harmlessGitSettings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^((color\.[a-z.]+|user\.(name|email)|core\.(quotepath|autocrlf|filemode|abbrev)|advice\.[a-z]+|init\.defaultbranch` +
		`|log\.[a-z]+|diff\.(renames|context|noprefix|algorithm|color[a-z]*)|pull\.rebase|merge\.conflictstyle)=.*` +
		`|core\.(pager|editor)=(cat|true|:)|(commit|tag)\.gpgsign=false)$`)
})

// singleFile matches paths that name one file by its extension. A path without
// an extension may be a directory.
var singleFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^:*?\[]*[^/.:*?\[]\.[^/*?\[\]]+$`) })

// discardsChanges reports whether git checkout, restore or switch overwrites
// changed files that are not named one by one.
func discardsChanges(key string, g arguments) bool {
	files := g.operands
	restores := key == "git restore"
	switch {
	case !restores && g.hasFlag("f", "force", "discard-changes"):
		return true
	case restores && g.hasFlag("S", "staged") && !g.hasFlag("W", "worktree"):
		return false // changes only the index
	case g.dashes >= 0:
		files = files[g.dashes:]
	case !restores && (key == "git switch" || len(files) == 1 || g.hasFlag("b", "B", "c", "C", "orphan", "t", "track")):
		return slices.ContainsFunc(files, func(v value) bool { // a branch, unless it looks like a directory
			return strings.HasSuffix(v.text, "/") || strings.HasPrefix(v.text, ".") || strings.ContainsAny(v.text, ":*?[")
		})
	case !restores:
		files = files[min(1, len(files)):]
	}
	return slices.ContainsFunc(files, func(v value) bool { return v.kind != known || !singleFile().MatchString(v.text) })
}
