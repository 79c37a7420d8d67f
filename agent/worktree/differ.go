package worktree

import "context"

// Differ answers for a Tree. Git in the sandbox is one; tests have one in memory.
type Differ interface {
	Diff(ctx context.Context) (Diff, error)
	Check(ctx context.Context, patch []byte) (CheckResult, error)
	Hash(ctx context.Context) (string, error)
}

// New returns a Tree with a state at the start, for which d answers instead of git.
func New(start State, d Differ) *Tree {
	return &Tree{Base: start.Base, start: start, differ: d}
}
