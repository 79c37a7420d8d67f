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
	hashTimeout = time.Minute
	tidyTimeout = 10 * time.Second
)

// Hash returns git's hash of the working tree as it is now, with what a diff takes:
// new files, but not the ignored ones. It is the Tree that Diff has of the same
// files. It is empty where there is no repository.
//
// Git reads those files only that are newer than the repository's index, so that it
// takes little more than a stat of each file. Nothing is left in the sandbox, also
// where ctx ends it.
func (t *Tree) Hash(ctx context.Context) (string, error) {
	if t.Base == "" {
		return "", nil
	}
	within, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	a, err := t.take(within, ladder[0], t.cfg.MaxPatch, hashScript)
	if err != nil {
		t.tidy(context.WithoutCancel(ctx))
		return "", fmt.Errorf("hash working tree: %w", err)
	}
	return a.tree, nil
}

// tidy removes what a script that was killed has left.
func (t *Tree) tidy(ctx context.Context) {
	script := "common=" + quote(t.common) + `
for place in ${TMPDIR:+"$TMPDIR"} /tmp /var/tmp "$common" /dev/shm; do
	rm -rf "$place/mini-tmp.` + t.tag + `"*
done
`
	_, _ = execute(ctx, t.box, script+"exit\n"+hashScript, tidyTimeout) // a sandbox that is lost has nothing left
}
