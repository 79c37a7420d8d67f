package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Diff is what changed in a working tree; the patch is empty where nothing has.
type Diff struct {
	// Summary is, say, "3 files changed, 12 insertions, 1 deletion".
	Summary string
	// Patch is for people: renames are found, and of binary files it says only
	// that they differ. It is as foreign as the files are, and cut where it is long.
	Patch []byte
	// Tree names the state that was looked at; Restore takes it.
	Tree string
}

// maxPatch bounds what is held for a screen, in bytes.
const maxPatch = 4 << 20

// Diff is what changed since the snapshot was taken. It may be asked for while
// commands run.
func (s *Snapshot) Diff(ctx context.Context) (Diff, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.diff(ctx)
	if err != nil {
		return Diff{}, fmt.Errorf("take diff: %w", err)
	}
	return d, nil
}

func (s *Snapshot) diff(ctx context.Context) (Diff, error) {
	tree, err := s.look(ctx)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{Tree: tree}
	if tree == s.noted.Tree {
		return d, nil
	}
	out, err := s.compare(ctx, maxPatch, s.noted.Tree, tree, "--shortstat", "-p", "-M")
	if err != nil && !errors.Is(err, errCut) {
		return Diff{}, err
	}
	summary, patch, _ := bytes.Cut(out, []byte("\n\n"))
	d.Patch = patch
	d.Summary = strings.NewReplacer(", 0 insertions(+), 0 deletions(-)", "", "(+)", "", "(-)", "").
		Replace(strings.TrimSpace(string(summary)))
	return d, nil
}

// look takes the files as they are now. Commands may change them meanwhile, so
// that it tries again.
func (s *Snapshot) look(ctx context.Context) (tree string, err error) {
	dir := filepath.Join(s.store, "git")
	for range 3 {
		if err := copyFile(filepath.Join(dir, startIndex), filepath.Join(dir, nowIndex)); err != nil {
			return "", err
		}
		tree, err = s.write(ctx, nowIndex, false)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return tree, err
}

// compare is diff-tree on the store, with no settings and no programs.
func (s *Snapshot) compare(ctx context.Context, most int, from, to string, options ...string) ([]byte, error) {
	args := append([]string{"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, options...)
	return run(ctx, s.git, call{dir: s.noted.Top, env: s.shadowEnv(nowIndex), most: most}, append(args, from, to)...)
}
