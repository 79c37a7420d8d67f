package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
)

// CompareTree compares the hash of the working tree (worktree.Tree.Hash) with the
// recorded hash and returns f, or a Diverged Finding if they differ. It returns f
// unchanged if there is no recorded hash or no repository, or if the hash cannot be
// computed. It returns an error if the sandbox was lost or ctx ended.
func (f Finding) CompareTree(ctx context.Context, tree *worktree.Tree, recorded string) (Finding, error) {
	if recorded == "" || tree == nil || tree.Base == "" || f.Match == Diverged {
		return f, nil
	}
	got, err := tree.Hash(ctx)
	if _, sandboxLost := errors.AsType[*env.Error](err); sandboxLost || err != nil && ctx.Err() != nil {
		return f, orCause(ctx, err)
	}
	if err != nil || got == recorded {
		return f, nil //nolint:nilerr // without git, only the exit code and output are compared
	}
	difference := fmt.Sprintf("the working tree is %.12s, recorded %.12s", got, printable(recorded))
	if f.Difference != "" {
		difference += "; " + f.Difference
	}
	return Finding{Match: Diverged, Difference: difference}, nil
}
