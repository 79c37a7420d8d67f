package worktree

import (
	"context"
	_ "embed"
	"fmt"
	"time"
)

//go:embed hash.sh
var hashScript string

const (
	hashTimeout       = time.Minute
	removeTempTimeout = 10 * time.Second
)

// Hash returns git's hash of the current working tree, with the same files as
// Diff: new ones, but not ignored ones. For the same files, the hash equals Diff's
// Tree, unless Diff leaves out more files to make the patch small enough. The
// hash is empty if there is no repository.
//
// Git reads only files that are newer than the repository's index, so Hash
// costs little more than a stat of each file. It leaves no files in the
// sandbox, even if ctx ends.
func (t *Tree) Hash(ctx context.Context) (string, error) {
	switch {
	case t.Base == "":
		return "", nil
	case t.differ != nil:
		return t.differ.Hash(ctx)
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	out, err := t.runOnTree(timeoutCtx, limitSteps[0], t.cfg.MaxPatch, hashScript)
	if err != nil {
		t.removeTemp(context.WithoutCancel(ctx))
		return "", fmt.Errorf("hash working tree: %w", err)
	}
	return out.tree, nil
}

// removeTemp removes the temporary files of a script that was killed.
func (t *Tree) removeTemp(ctx context.Context) {
	script := "common=" + shellQuote(t.commonDir) + `
for place in ${TMPDIR:+"$TMPDIR"} /tmp /var/tmp "$common" /dev/shm; do
	rm -rf "$place/mini-tmp.` + t.tempTag + `"*
done
`
	_, _ = execute(ctx, t.sandbox, script+"exit\n"+hashScript, removeTempTimeout) // no error handling: a lost sandbox has no files left
}
