package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/repository"
)

// Diff is what changed in a working tree since the start.
type Diff struct {
	// Patch is a patch for git apply. It includes untracked files, but not
	// ignored ones. Binary files and text that is not UTF-8 are binary patches,
	// so Patch is always valid UTF-8. A rename is a deletion and a new file.
	// Files of submodules are as those of the repository. Other nested repositories are
	// left out.
	Patch []byte
	// Tree is git's hash of the tree with Patch applied.
	Tree string
	// Exact reports that applying the patch to the files at the start gave
	// exactly Tree. If it did not, Problem is git's message.
	Exact   bool
	Problem string
	// Omitted lists changed files and folders that the patch leaves out because
	// they are too large or unreadable, or because git rejects them. Only the first are
	// listed; OmittedCount counts all.
	Omitted      []Omission
	OmittedCount int
}

// Omission is an omitted file or folder.
type Omission = repository.Omission

// Diff returns what changed since the start. It fails if the objects of the start are
// gone, if there is no disk space, or if the change is too large even without its large
// files.
func (t *Tree) Diff(ctx context.Context) (Diff, error) {
	switch {
	case t.Base == "":
		return Diff{}, nil
	case t.differ != nil:
		return t.differ.Diff(ctx)
	}
	res, err := t.run(ctx, repository.Request{Op: repository.Diff, Time: diffTime})
	switch {
	case errors.Is(err, errTooLarge):
		return Diff{}, fmt.Errorf("take diff: %w (agent.max_patch_bytes)", err)
	case err == nil && (res.Tree == "" || len(res.Patch) > t.cfg.MaxPatch || !utf8.Valid(res.Patch)):
		err = errInvalidOutput
	}
	if err != nil {
		return Diff{}, fmt.Errorf("take diff: %w", err)
	}
	d := Diff{Patch: res.Patch, Tree: res.Tree, Exact: res.Exact, Problem: sanitize(res.Problem), OmittedCount: res.OmittedCount}
	for _, o := range res.Omitted[:min(len(res.Omitted), repository.MaxOmitted)] {
		d.Omitted = append(d.Omitted, Omission{Name: sanitize(o.Name), Reason: sanitize(o.Reason)})
	}
	return d, nil
}

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
	res, err := t.run(ctx, repository.Request{Op: repository.Check, Time: checkTime, Patch: patch})
	if err == nil && res.Problem == "" && (res.Tree == "" || len(res.Patch) == 0 || !utf8.Valid(res.Patch)) {
		err = errInvalidOutput
	}
	if err != nil {
		return CheckResult{}, fmt.Errorf("check patch: %w", err)
	}
	if res.Problem != "" {
		return CheckResult{GitError: sanitize(res.Problem)}, nil
	}
	return CheckResult{Patch: res.Patch, NewlineAdded: res.NewlineAdded, Regenerated: res.Regenerated, Tree: res.Tree}, nil
}

// maxCheckedPatch returns the maximum size of a patch to check, in bytes:
// Config.MaxPatch, or less if such a patch would not fit into a request.
func (t *Tree) maxCheckedPatch() int {
	return min(t.cfg.MaxPatch, env.MaxScript-1<<20-len(t.start.Patch)-len(t.start.LeftOut))
}
