package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
)

// CompareTree compares the working tree's hash (worktree.Tree.Hash) with the
// recorded one. It returns f unchanged if there is no recorded hash, no repository,
// or no hash can be taken. An error means that the sandbox was lost or ctx ended.
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
