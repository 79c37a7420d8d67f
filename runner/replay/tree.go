package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
)

// WithTree holds the working tree after a command against the recorded one: its
// hash, as worktree.Tree.Hash gives it. The finding stays as it is where there is
// no hash on record, no repository, or none could be taken. The error says that
// the sandbox was lost or ctx ended.
func (f Finding) WithTree(ctx context.Context, tree *worktree.Tree, recorded string) (Finding, error) {
	if recorded == "" || tree == nil || tree.Base == "" || f.Match == Diverged {
		return f, nil
	}
	now, err := tree.Hash(ctx)
	if _, lost := errors.AsType[*env.Error](err); lost || err != nil && ctx.Err() != nil {
		return f, orCause(ctx, err)
	}
	if err != nil || now == recorded {
		return f, nil //nolint:nilerr // the exit code judges where git cannot
	}
	difference := fmt.Sprintf("the working tree is %.12s, recorded %.12s", now, shown(recorded))
	if f.Difference != "" {
		difference += "; " + f.Difference
	}
	return Finding{Match: Diverged, Difference: difference}, nil
}
