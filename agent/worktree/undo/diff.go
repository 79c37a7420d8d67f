package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/env/helper/repository"
)

// Diff describes the changes of a working tree. If there are none, Summary and
// Patch are empty.
type Diff struct {
	// Summary is the size of the changes, for example "3 files changed, 12 insertions, 1
	// deletion".
	Summary string
	// Patch is for display: it has renames, and no binary contents. It is untrusted, and
	// truncated if long.
	Patch []byte
	// Files are the names of the changed files, each with the letter that git status has
	// for the change; at most maxFiles of them. They are untrusted.
	Files []string
	// TreeID identifies the compared state, for Restore.
	TreeID string
}

// maxPatch is the maximum size of a patch, in bytes, maxFiles that of Diff.Files.
const maxPatch, maxFiles = 4 << 20, 20

// Diff returns the changes since the snapshot. Commands may run meanwhile.
func (s *Snapshot) Diff(ctx context.Context) (Diff, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	d, err := s.diff(ctx)
	if err != nil {
		return Diff{}, fmt.Errorf("take diff: %w", err)
	}
	return d, nil
}

func (s *Snapshot) diff(ctx context.Context) (Diff, error) {
	tree, err := s.currentTree(ctx)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{TreeID: tree}
	if tree == s.meta.Tree {
		return d, nil
	}
	out, err := s.diffTree(ctx, maxPatch, s.meta.Tree, tree, "--shortstat", "-p", "-M")
	if err != nil && !errors.Is(err, errTruncated) {
		return Diff{}, err
	}
	summary, patch, _ := bytes.Cut(out, []byte("\n\n"))
	d.Patch = patch
	names, err := s.diffTree(ctx, maxPatch, s.meta.Tree, tree, "--name-status", "-z")
	if err != nil && !errors.Is(err, errTruncated) {
		return Diff{}, err
	}
	fields := strings.Split(string(names), "\x00")
	for i := 0; i+1 < len(fields) && len(d.Files) < maxFiles; i += 2 {
		d.Files = append(d.Files, fields[i]+" "+fields[i+1])
	}
	d.Summary = strings.NewReplacer(", 0 insertions(+), 0 deletions(-)", "", "(+)", "", "(-)", "").
		Replace(strings.TrimSpace(string(summary)))
	return d, nil
}

// currentTree stores the current files and returns the id of their tree. It
// tries up to three times, because commands may change files meanwhile.
func (s *Snapshot) currentTree(ctx context.Context) (tree string, err error) {
	dir := filepath.Join(s.store, "git")
	for range 3 {
		if err := copyFile(filepath.Join(dir, startIndex), filepath.Join(dir, currentIndex)); err != nil {
			return "", err
		}
		tree, err = s.writeTree(ctx, currentIndex, false)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return tree, err
}

// diffTree runs git diff-tree on the store, without diff settings and external
// programs.
func (s *Snapshot) diffTree(ctx context.Context, maxBytes int, from, to string, options ...string) ([]byte, error) {
	args := append([]string{"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, options...)
	return runGit(ctx, s.git, gitCall{dir: s.meta.Top, env: s.shadowEnv(currentIndex), maxBytes: maxBytes}, append(args, from, to)...)
}
