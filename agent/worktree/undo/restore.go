package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// RestoreResult is the result of Restore. Commits and the user's index are not changed.
type RestoreResult struct {
	// Restored are files that were restored, Removed new files that were removed.
	Restored, Removed []string
	// Skipped are files left unchanged because they changed after the diff was
	// shown.
	Skipped []string
}

// Restore restores the files of the snapshot and removes new ones. seen is the
// TreeID of the diff that the user has seen: files that changed after that diff
// are skipped. If seen is empty, no file is skipped.
//
// The error names the files that could not be restored. Restore can then be
// called again to restore the rest.
func (s *Snapshot) Restore(ctx context.Context, seen string) (RestoreResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.restore(ctx, seen)
	if err != nil {
		return result, fmt.Errorf("restore files: %w", err)
	}
	return result, nil
}

func (s *Snapshot) restore(ctx context.Context, seen string) (RestoreResult, error) {
	var result RestoreResult
	current, err := s.currentTree(ctx)
	if err != nil {
		return result, err
	}
	changes, err := s.changes(ctx, s.meta.Tree, current)
	if err != nil {
		return result, err
	}
	if seen != "" && seen != current {
		later, err := s.changes(ctx, seen, current)
		if err != nil {
			return result, err
		}
		changes = slices.DeleteFunc(changes, func(c change) bool {
			skip := slices.ContainsFunc(later, func(l change) bool { return l.path == c.path })
			if skip {
				result.Skipped = append(result.Skipped, c.path)
			}
			return skip
		})
	}
	root, err := os.OpenRoot(s.meta.Top)
	if err != nil {
		return result, err
	}
	err = errors.Join(s.apply(ctx, root, changes, &result), root.Close())
	if err != nil || len(result.Skipped) > 0 {
		return result, err
	}
	if current, err = s.currentTree(ctx); err == nil && current != s.meta.Tree {
		err = errors.New("files changed meanwhile")
	}
	return result, err
}

// change is a file that differs between two trees.
type change struct {
	path, mode, object string // mode and object are those of the first tree
	added              bool   // not in the first tree
}

func (s *Snapshot) changes(ctx context.Context, from, to string) ([]change, error) {
	out, err := s.diffTree(ctx, 0, from, to, "--raw", "-z", "--no-renames")
	if err != nil {
		return nil, err
	}
	var all []change
	for fields := range slices.Chunk(splitNul(out), 2) {
		info := strings.Fields(fields[0])
		if len(fields) != 2 || len(info) != 5 {
			return nil, errors.New("git diff-tree: invalid output")
		}
		c := change{path: fields[1], mode: strings.TrimPrefix(info[0], ":"), object: info[2], added: info[4] == "A"}
		if c.mode != "160000" && info[1] != "160000" { // skip submodules
			all = append(all, c)
		}
	}
	return all, nil
}

// apply first removes new files, which may be in the way of others, and then
// restores the other files. It continues after errors of single files.
func (s *Snapshot) apply(ctx context.Context, root *os.Root, changes []change, result *RestoreResult) error {
	missing, err := s.missingObjects(ctx, changes)
	if err != nil {
		return err
	}
	var failed []error
	var restored []change
	var list bytes.Buffer
	for _, c := range changes {
		if !c.added {
			continue
		}
		if err := removePath(root, c.path); err != nil {
			failed = append(failed, err)
			continue
		}
		result.Removed = append(result.Removed, c.path)
		// Remove folders that become empty.
		for dir := path.Dir(c.path); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
	}
	for _, c := range changes {
		if c.added {
			continue
		}
		if missing[c.object] {
			failed = append(failed, fmt.Errorf("restore %s: its object is missing", c.path))
			continue
		}
		if err := removePath(root, c.path); err != nil {
			failed = append(failed, err)
			continue
		}
		restored = append(restored, c)
		list.WriteString(c.path + "\x00")
	}
	if len(restored) == 0 {
		return errors.Join(failed...)
	}
	if _, err := s.runShadow(ctx, startIndex, &list, "checkout-index", "-f", "-z", "--stdin"); err != nil {
		failed = append(failed, err)
	}
	for _, c := range restored {
		if err := s.chmod(root, c); err != nil {
			failed = append(failed, err)
			continue
		}
		result.Restored = append(result.Restored, c.path)
	}
	return errors.Join(failed...)
}

// missingObjects returns the objects of changes that neither the store nor the
// repository has. Files with such objects cannot be restored and must not be
// removed.
func (s *Snapshot) missingObjects(ctx context.Context, changes []change) (map[string]bool, error) {
	var list bytes.Buffer
	for _, c := range changes {
		if !c.added {
			list.WriteString(c.object + "\n")
		}
	}
	out, err := s.runShadow(ctx, startIndex, &list, "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	missingSet := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if object, isMissing := strings.CutSuffix(line, " missing\n"); isMissing {
			missingSet[object] = true
		}
	}
	return missingSet, nil
}

// removePath removes a file or an empty folder, so that git can write a file
// there. Git itself would remove a folder with ignored files in it, and follow
// or replace a symbolic link among the parents.
func removePath(root *os.Root, name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("restore %s: %s is in the way", name, dir)
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	return nil
}

// chmod restores the permissions of a file.
func (s *Snapshot) chmod(root *os.Root, c change) error {
	perm, recorded := s.meta.Modes[c.path]
	switch {
	case c.mode == "120000":
		_, err := root.Lstat(c.path)
		return err
	case recorded:
	case c.mode == "100755":
		perm = executableMode
	default:
		perm = regularMode
	}
	return root.Chmod(c.path, perm)
}
