package script

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

var (
	gitFile = lazyregexp.New(`^diff --git ("?a/[^\t\n]+"?) ("?b/[^\t\n]+"?)`)
	newFile = lazyregexp.New(`(?m)^new file mode \d+$`)
	oldName = lazyregexp.New(`(?m)^--- a/([^\t\n]+)`)
)

// PatchFiles returns the names of the files that a git patch changes or deletes
// (changed), and of those that it adds (added), in order. As in the official harness,
// quoted names keep their quotes in added and are omitted from changed.
func PatchFiles(patch string) (changed, added []string) {
	for section := range strings.SplitSeq("\n"+patch, "\ndiff --git ") {
		m := gitFile.FindStringSubmatch("diff --git " + section)
		if m == nil {
			continue // text before the first file
		}
		head, _, _ := strings.Cut(section, "\n@@ ")
		switch name, plain := strings.CutPrefix(m[1], "a/"); {
		case newFile.MatchString(head):
			added = append(added, strings.Replace(m[2], "b/", "", 1))
		case plain:
			changed = append(changed, name)
			// A header with several " b/" is ambiguous, so add both possible names.
			if m := oldName.FindStringSubmatch(head); m != nil && m[1] != name {
				changed = append(changed, m[1])
			}
		}
	}
	return changed, added
}
