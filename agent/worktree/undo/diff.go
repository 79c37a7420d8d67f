package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	// Files are the first of the changed files, at most maxFiles; Count is the number of all.
	Files []FileChange
	Count int
	// TreeID identifies the compared state, for Restore.
	TreeID string
}

// FileChange is the change of one file. The name is untrusted.
type FileChange struct {
	Name   string
	Status byte // the letter that git status has for it, such as 'M' or 'A'
	// Added and Removed are numbers of lines; -1 for files that are not text.
	Added, Removed int
}

// maxPatch is the maximum size of a patch, in bytes, maxFiles that of Diff.Files.
const maxPatch, maxFiles = 4 << 20, 20

// Diff returns the changes since the snapshot. Commands may run meanwhile.
func (s *Snapshot) Diff(ctx context.Context) (Diff, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	tree, err := s.currentTree(ctx)
	if err == nil {
		var d Diff
		if d, err = s.diff(ctx, s.meta.Tree, tree); err == nil {
			return d, nil
		}
	}
	return Diff{}, fmt.Errorf("take diff: %w", err)
}

// diff returns the changes between two trees.
func (s *Snapshot) diff(ctx context.Context, from, to string) (Diff, error) {
	d := Diff{TreeID: to}
	if from == to {
		return d, nil
	}
	out, err := s.diffTree(ctx, maxPatch, from, to, "--shortstat", "-p", "-M")
	if err != nil && !errors.Is(err, errTruncated) {
		return Diff{}, err
	}
	summary, patch, _ := bytes.Cut(out, []byte("\n\n"))
	d.Patch = patch
	d.Summary = strings.NewReplacer(", 0 insertions(+), 0 deletions(-)", "", "(+)", "", "(-)", "").
		Replace(strings.TrimSpace(string(summary)))
	names, err := s.diffTree(ctx, maxPatch, from, to, "--raw", "--numstat", "-z", "--no-renames")
	if err != nil && !errors.Is(err, errTruncated) {
		return Diff{}, err
	}
	d.addFiles(splitNul(names))
	return d, nil
}

// addFiles adds the files of the output of --raw --numstat: first two fields for each file, with
// its status and its name, then one with its lines and its name.
func (d *Diff) addFiles(fields []string) {
	counts := fields
	for len(counts) > 1 && strings.HasPrefix(counts[0], ":") {
		if d.Count++; d.Count <= maxFiles {
			d.Files = append(d.Files, FileChange{Name: counts[1], Status: counts[0][len(counts[0])-1], Added: -1, Removed: -1})
		}
		counts = counts[2:]
	}
	for i := range d.Files[:min(len(d.Files), len(counts))] {
		numbers := strings.SplitN(counts[i], "\t", 3)
		added, err := strconv.Atoi(numbers[0])
		if err != nil || len(numbers) != 3 || numbers[2] != d.Files[i].Name {
			continue // not text
		}
		d.Files[i].Added = added
		d.Files[i].Removed, _ = strconv.Atoi(numbers[1]) // a number, as the first is
	}
}

// currentTree stores the current files and returns the id of their tree. It
// tries up to three times, because commands may change files meanwhile, and begins
// with the start index again after a failure.
func (s *Snapshot) currentTree(ctx context.Context) (tree string, err error) {
	dir := filepath.Join(s.store, "git")
	for range 3 {
		if s.current == "" {
			if err := s.resetCurrent(dir); err != nil {
				return "", err
			}
			s.current, s.remaining = s.meta.Tree, maxStore
		}
		tree, err = s.writeTree(ctx, currentIndex, s.current)
		if s.current = tree; err == nil || ctx.Err() != nil {
			break
		}
	}
	return tree, err
}

// resetCurrent makes currentIndex a copy of startIndex.
func (s *Snapshot) resetCurrent(dir string) error {
	for _, name := range []string{currentIndex, currentIndex + ".lock"} { // of a git that was killed
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return copyFile(filepath.Join(dir, startIndex), filepath.Join(dir, currentIndex))
}

// diffTree runs git diff-tree on the store, without diff settings and external
// programs.
func (s *Snapshot) diffTree(ctx context.Context, maxBytes int, from, to string, options ...string) ([]byte, error) {
	args := append([]string{"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, options...)
	return runGit(ctx, s.git, gitCall{dir: s.meta.Top, env: s.shadowEnv(currentIndex), maxBytes: maxBytes}, append(args, from, to)...)
}
