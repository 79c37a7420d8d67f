package worktree

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed tree.sh
var treeScript string

//go:embed start.sh
var startScript string

// State is how the files were at the start. mini keeps it, not the sandbox, in
// which the agent may remove anything.
type State struct {
	Base string // the commit, as in Tree.Base
	// Tree is git's hash of the files: those of the commit, changed as they are,
	// and new ones that git does not ignore. Patch makes it of the commit; it is
	// empty for a clean repository.
	Tree  string
	Patch []byte
	// Ignored names files that git ignores, each with a NUL after it, and the
	// folder where there are too many in it. They are there wherever the sandbox
	// is made anew, and never new.
	Ignored []byte
	// Left names what is neither, as it is too large, say: each after a stamp,
	// by which it is known whether it changed, and a tab, and with a NUL after it.
	Left []byte
}

// maxStart is how large the patch of the state may be, in bytes, and maxLists
// are the names of what is not in it: they travel with every script.
const (
	maxStart = 4 << 20
	maxLists = 2 << 20
)

// takeStart takes the state as it is. What is large is left out first, as in a
// diff.
func (t *Tree) takeStart(ctx context.Context) (State, error) {
	return climb(ctx, func(r rung) (State, error) {
		a, err := t.take(ctx, r, maxStart, startScript)
		s := State{Base: t.Base, Tree: a.tree, Patch: a.patch, Ignored: a.words, Left: a.omitted}
		switch {
		case err != nil:
			return State{}, err
		case a.tree == "" || len(a.patch) > maxStart || len(a.words)+len(a.omitted) > maxLists:
			return State{}, errAnswer
		case bytes.Count(a.omitted, []byte{0}) < a.count:
			return State{}, fmt.Errorf("there are %d files that are too many for a patch: %w", a.count, errLarge)
		}
		return s, nil
	})
}

// Start is the state that diffs are against.
func (t *Tree) Start() State { return t.start }

// functions are those that tree.sh asks for.
func (s State) functions() string {
	// A name of several lines cannot be told from several names.
	ignored := slices.DeleteFunc(entries(s.Ignored), func(name string) bool { return strings.Contains(name, "\n") })
	var calls strings.Builder
	for stamp, name := range s.left {
		fmt.Fprintf(&calls, "left %s %s\n", quote(name), quote(stamp))
	}
	return file("ignored", []byte(strings.Join(ignored, "\n"))) + "left_out() {\n:\n" + calls.String() + "}\n"
}

// left yields what was left out, after its stamp.
func (s State) left(yield func(stamp, name string) bool) {
	for _, entry := range entries(s.Left) {
		if stamp, name, ok := strings.Cut(entry, "\t"); ok && !yield(stamp, name) {
			return
		}
	}
}

// junk is the gitignore file of what is in no diff.
func (t *Tree) junk() []byte {
	lines := slices.Clone(t.cfg.Exclude)
	for _, name := range t.start.left {
		lines = append(lines, excludePattern(name))
	}
	return []byte(strings.Join(lines, "\n"))
}

// entries are those of a list, each with a NUL after it; one that was cut off is
// none.
func entries(list []byte) []string {
	all := strings.Split(string(list), "\x00")
	return all[:len(all)-1]
}
