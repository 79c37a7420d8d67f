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

// CheckResult is the result of checking a patch against the state at the start.
type CheckResult struct {
	// Patch is the patch to submit; empty if the checked patch does not apply.
	// Patch is the checked one, unless newlines that were missing at its end
	// were added (NewlineAdded), or it was regenerated with the same effect
	// because it was not valid UTF-8 or applied only to the commit
	// (Regenerated).
	Patch                     []byte
	NewlineAdded, Regenerated bool
	// Tree is git's hash of the tree with the patch applied.
	Tree string
	// GitError is the error of git apply, in a few sanitized lines; empty if
	// the patch applies.
	GitError string
}

// Check checks whether a patch applies to the state at the start. If it does
// not, GitError says why. An error means that the check itself failed, for
// example because there is no repository.
func (t *Tree) Check(ctx context.Context, patch []byte) (CheckResult, error) {
	switch {
	case t.Base == "":
		return CheckResult{}, errors.New("check patch: there is " + t.Missing)
	case t.differ != nil:
		return t.differ.Check(ctx, patch)
	case len(patch) > t.maxCheckedPatch():
		return CheckResult{GitError: fmt.Sprintf("error: it has %d bytes, and %d are the most", len(patch), t.maxCheckedPatch())}, nil
	case bytes.IndexByte(patch, 0) >= 0:
		return CheckResult{GitError: "error: it has a NUL byte, so that it is no text"}, nil
	case len(bytes.TrimSpace(patch)) == 0:
		return CheckResult{GitError: "error: it is empty"}, nil
	}
	regenerate := !utf8.Valid(patch)
	end, recheck := missingNewlines(patch)
	vars := fmt.Sprintf("size=%d\nend=%s\ndoubtful=%t\nbinary=%t\n", len(patch), shellQuote(strings.ReplaceAll(end, "\n", `\n`)), recheck, regenerate)
	out, err := t.runScript(ctx, shellFunction("submission", patch)+vars+checkScript, binaryAttributes(patch), scriptTimeout)
	if err != nil {
		return CheckResult{}, fmt.Errorf("check patch: %w", err)
	}
	result := CheckResult{Patch: patch, Tree: out.tree, NewlineAdded: out.state == "mended", Regenerated: regenerate}
	switch out.state {
	case "applies":
	case "rebased":
		result.Regenerated = true
	case "mended":
		result.Patch = append(bytes.Clone(patch), end...)
	case "refused":
		return CheckResult{GitError: sanitize(out.message)}, nil
	default:
		return CheckResult{}, fmt.Errorf("check patch: %w", errInvalidOutput)
	}
	if !result.Regenerated {
		return result, nil
	}
	switch result.Patch = out.patch; {
	case !utf8.Valid(result.Patch):
		return CheckResult{GitError: "error: it names files that are not UTF-8"}, nil
	case len(result.Patch) == 0:
		return CheckResult{GitError: "error: it has only what was changed before the work began"}, nil
	}
	return result, nil
}

// missingNewlines returns the newlines that a patch may have lost at its end,
// for example in a shell's $(...): the end of the last line, or the empty line
// after a binary file. recheck is true if the patch may apply without them but
// incompletely: without the empty line git omits the binary file and reports no
// error.
func missingNewlines(patch []byte) (end string, recheck bool) {
	hasBinary := bytes.Contains(patch, []byte("\nGIT binary patch\n"))
	switch {
	case !bytes.HasSuffix(patch, []byte("\n")) && hasBinary:
		return "\n\n", true
	case !bytes.HasSuffix(patch, []byte("\n")):
		return "\n", true
	}
	return "\n", hasBinary && !bytes.HasSuffix(patch, []byte("\n\n"))
}

// maxCheckedPatch returns the maximum size of a patch to check, in bytes:
// Config.MaxPatch, or less if such a patch would not fit into a script.
func (t *Tree) maxCheckedPatch() int {
	return min(t.cfg.MaxPatch, env.MaxScript-1<<20-len(t.start.Patch)-len(t.start.LeftOut))
}
