package worktree

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

//go:embed check.sh
var checkScript string

// Finding is what became of a patch that was held against the base.
type Finding struct {
	// Patch is the one to keep: the given one byte for byte, but with the line
	// ends that it lacks where it only applies whole with them (Mended), and
	// made anew, with the same effect, where it was not valid UTF-8, or applies
	// to the commit and not to the state at the start (Remade).
	Patch          []byte
	Mended, Remade bool
	// Tree is git's hash of the tree that the patch makes of the base.
	Tree string
	// Refusal is what git apply said of a patch that it does not take, in a
	// few printable lines; empty for one that it takes.
	Refusal string
}

// Check holds a patch against the state at the start. A patch that does not
// apply is a Finding; an error says that there was no finding out, for want of
// a repository, say.
func (t *Tree) Check(ctx context.Context, patch []byte) (Finding, error) {
	switch {
	case t.Base == "":
		return Finding{}, errors.New("check patch: there is " + t.Missing)
	case len(patch) > t.maxCheck():
		return Finding{Refusal: fmt.Sprintf("error: it has %d bytes, and %d are the most", len(patch), t.maxCheck())}, nil
	case bytes.IndexByte(patch, 0) >= 0:
		return Finding{Refusal: "error: it has a NUL byte, so that it is no text"}, nil
	case len(bytes.TrimSpace(patch)) == 0:
		return Finding{Refusal: "error: it is empty"}, nil
	}
	remake := !utf8.Valid(patch)
	end, doubtful := missingEnd(patch)
	vars := fmt.Sprintf("size=%d\nend=%s\ndoubtful=%t\nbinary=%t\n", len(patch), quote(strings.ReplaceAll(end, "\n", `\n`)), doubtful, remake)
	a, err := t.ask(ctx, file("submission", patch)+vars+checkScript, attributes(patch), timeout)
	if err != nil {
		return Finding{}, fmt.Errorf("check patch: %w", err)
	}
	f := Finding{Patch: patch, Tree: a.tree, Mended: a.state == "mended", Remade: remake}
	switch a.state {
	case "applies":
	case "rebased":
		f.Remade = true
	case "mended":
		f.Patch = append(bytes.Clone(patch), end...)
	case "refused":
		return Finding{Refusal: printable(a.words)}, nil
	default:
		return Finding{}, fmt.Errorf("check patch: %w", errAnswer)
	}
	if !f.Remade {
		return f, nil
	}
	switch f.Patch = a.patch; {
	case !utf8.Valid(f.Patch):
		return Finding{Refusal: "error: it names files that are not UTF-8"}, nil
	case len(f.Patch) == 0:
		return Finding{Refusal: "error: it has only what was changed before the work began"}, nil
	}
	return f, nil
}

// missingEnd is what a patch may have lost at its end, on its way through a
// shell's $(...), say: the end of its last line, or the empty line that ends a
// binary file. Git says nothing of the latter and leaves the file out, so that
// its word alone is doubtful.
func missingEnd(patch []byte) (end string, doubtful bool) {
	hasBinary := bytes.Contains(patch, []byte("\nGIT binary patch\n"))
	switch {
	case !bytes.HasSuffix(patch, []byte("\n")) && hasBinary:
		return "\n\n", true
	case !bytes.HasSuffix(patch, []byte("\n")):
		return "\n", true
	}
	return "\n", hasBinary && !bytes.HasSuffix(patch, []byte("\n\n"))
}

// maxCheck is the longest patch that fits into a script beside the rest.
func (t *Tree) maxCheck() int {
	return min(t.cfg.MaxPatch, env.MaxScript-1<<20-len(t.start.Patch)-len(t.start.Left))
}
