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

// State is the state of the files at the start. mini keeps it outside the
// sandbox, where the agent cannot remove it.
type State struct {
	Base string // the commit, as in Tree.Base
	// Tree is git's hash of the files: those of the commit with their changes,
	// and new ones that git does not ignore. Patch turns the files of the
	// commit into Tree; it is empty for a clean repository.
	Tree  string
	Patch []byte
	// Ignored lists the files that git ignores, NUL-terminated. For a folder
	// with too many files it lists only the folder. Rebuilt sandboxes have
	// these files, too, so they never count as new.
	Ignored []byte
	// LeftOut lists other files that Tree leaves out, for example because they
	// are too large. Each entry is a stamp that changes with the file, a tab,
	// and the name, NUL-terminated.
	LeftOut []byte
}

// maxStatePatch bounds State.Patch, and maxLists bounds Ignored and LeftOut
// together, in bytes. These three fields are part of every script.
const (
	maxStatePatch = 4 << 20
	maxLists      = 2 << 20
)

// captureState returns the current state. It leaves out large files first, as
// Diff does.
func (t *Tree) captureState(ctx context.Context) (State, error) {
	return tryLimits(ctx, func(limits sizeLimits) (State, error) {
		out, err := t.runOnTree(ctx, limits, maxStatePatch, startScript)
		s := State{Base: t.Base, Tree: out.tree, Patch: out.patch, Ignored: out.message, LeftOut: out.omitted}
		switch {
		case err != nil:
			return State{}, err
		case out.tree == "" || len(out.patch) > maxStatePatch || len(out.message)+len(out.omitted) > maxLists:
			return State{}, errInvalidOutput
		case bytes.Count(out.omitted, []byte{0}) < out.count:
			return State{}, fmt.Errorf("there are %d files that are too many for a patch: %w", out.count, errTooLarge)
		}
		return s, nil
	})
}

// Start returns the state that diffs are taken against.
func (t *Tree) Start() State { return t.start }

// shellFunctions returns the functions that tree.sh calls.
func (s State) shellFunctions() string {
	// tree.sh compares the names as lines, so the list cannot contain a name
	// with a newline.
	ignored := slices.DeleteFunc(splitNUL(s.Ignored), func(name string) bool { return strings.Contains(name, "\n") })
	var calls strings.Builder
	for stamp, name := range s.leftOutFiles {
		fmt.Fprintf(&calls, "left %s %s\n", shellQuote(name), shellQuote(stamp))
	}
	return shellFunction("ignored", []byte(strings.Join(ignored, "\n"))) + "left_out() {\n:\n" + calls.String() + "}\n"
}

// leftOutFiles yields the files that were left out, with their stamps.
func (s State) leftOutFiles(yield func(stamp, name string) bool) {
	for _, entry := range splitNUL(s.LeftOut) {
		if stamp, name, ok := strings.Cut(entry, "\t"); ok && !yield(stamp, name) {
			return
		}
	}
}

// excludeFile returns a gitignore file with Config.Exclude and the files in
// State.LeftOut.
func (t *Tree) excludeFile() []byte {
	lines := slices.Clone(t.cfg.Exclude)
	for _, name := range t.start.leftOutFiles {
		lines = append(lines, excludePattern(name))
	}
	return []byte(strings.Join(lines, "\n"))
}

// splitNUL splits a list of NUL-terminated entries. It drops an incomplete last
// entry.
func splitNUL(list []byte) []string {
	all := strings.Split(string(list), "\x00")
	return all[:len(all)-1]
}
