package undo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/minibench/mini/env/helper/repository"
)

// RestoreResult is the result of Restore. Commits and the user's index are not changed.
type RestoreResult struct {
	// Restored are files that were restored, Removed new files that were removed.
	Restored, Removed []string
	// Skipped are files left unchanged because they changed after the diff was
	// shown, or after the step, or because their contents were not stored.
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
	ctx, stop := repository.Watch(ctx, s.meta.Top)
	defer stop()
	result, err := s.restore(ctx, seen)
	if err != nil {
		return result, fmt.Errorf("restore files: %w", err)
	}
	return result, nil
}

func (s *Snapshot) restore(ctx context.Context, seen string) (RestoreResult, error) {
	current, err := s.currentTree(ctx)
	if err != nil {
		return RestoreResult{}, err
	}
	result, err := s.revert(ctx, s.meta.Tree, current, cmp.Or(seen, current), current)
	if err != nil {
		return result, err
	}
	if current, err = s.currentTree(ctx); err == nil && current != s.meta.Tree && len(result.Skipped) == 0 {
		err = errors.New("files changed meanwhile")
	}
	if err != nil {
		return result, err
	}
	s.last, s.meta.Steps = current, nil
	return result, s.saveMetadata()
}

// revert makes the files that differ between two trees, from and to, those of from, except the
// ones that have changed between the trees seen and current, or whose contents were not stored.
func (s *Snapshot) revert(ctx context.Context, from, to, seen, current string) (RestoreResult, error) {
	var result RestoreResult
	changes, err := s.changes(ctx, from, to)
	if err != nil {
		return result, err
	}
	later, err := s.changes(ctx, seen, current)
	if err != nil {
		return result, err
	}
	isLater := map[string]bool{}
	for _, c := range later {
		isLater[c.path] = true
	}
	unstored, err := s.runShadow(ctx, currentIndex, strings.NewReader(placeholder), "hash-object", "--stdin")
	if err != nil {
		return result, err
	}
	changes = slices.DeleteFunc(changes, func(c change) bool {
		skip := isLater[c.path] || !c.added && c.object == strings.TrimSpace(string(unstored))
		if skip {
			result.Skipped = append(result.Skipped, c.path)
		}
		return skip
	})
	root, err := os.OpenRoot(s.meta.Top)
	if err != nil {
		return result, err
	}
	return result, errors.Join(s.apply(ctx, root, changes, &result), root.Close())
}

// change is a file that differs between two trees.
type change struct {
	path, mode, object string // mode and object are those of the first tree
	added              bool   // not in the first tree
}

func (s *Snapshot) changes(ctx context.Context, from, to string) ([]change, error) {
	if from == to {
		return nil, nil
	}
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
		switch {
		case c.added:
		case missing[c.object]:
			failed = append(failed, fmt.Errorf("restore %s: its object is missing", c.path))
		default:
			restored = append(restored, c)
		}
	}
	done, err := s.write(ctx, root, restored)
	result.Restored = append(result.Restored, done...)
	return errors.Join(append(failed, err)...)
}

// write writes files as they were, with their permissions. Processes of the session may
// change folders to links meanwhile: root keeps the files inside the working tree. It
// returns the names of the written files.
func (s *Snapshot) write(ctx context.Context, root *os.Root, files []change) (written []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	var list bytes.Buffer
	for _, c := range files {
		list.WriteString(c.object + "\n")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	gitDone := make(chan error)
	go func() {
		_, err := runGit(ctx, s.git, gitCall{dir: s.meta.Top, env: s.shadowEnv(startIndex), in: &list, out: w}, "cat-file", "--batch")
		gitDone <- errors.Join(err, w.Close())
	}()
	var failed []error
	objects := bufio.NewReader(r)
	for _, c := range files {
		var object, kind string
		var size int64
		_, err := fmt.Fscanf(objects, "%s %s %d\n", &object, &kind, &size)
		if err == nil && (object != c.object || kind != "blob" || size < 0) {
			err = errors.New("invalid output of git cat-file")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("restore %s: %w", c.path, err))
			break
		}
		content := io.LimitReader(objects, size)
		if err := s.writeFile(root, c, content); err != nil {
			failed = append(failed, fmt.Errorf("restore %s: %w", c.path, err))
		} else {
			written = append(written, c.path)
		}
		if _, err := io.Copy(io.Discard, content); err != nil { // what writeFile has not read
			failed = append(failed, err)
			break
		}
		if _, err := objects.Discard(1); err != nil {
			failed = append(failed, err)
			break
		}
	}
	if len(failed) > 0 {
		_ = r.Close() // git may still be writing
	}
	err = <-gitDone
	if len(failed) > 0 {
		err = errors.Join(failed...)
	}
	_ = r.Close() // only read, or closed
	return written, err
}

// writeFile writes one file in place of what is there.
func (s *Snapshot) writeFile(root *os.Root, c change, content io.Reader) error {
	if err := removePath(root, c.path); err != nil {
		return err
	}
	if dir := path.Dir(c.path); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if c.mode == "120000" {
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return root.Symlink(string(target), c.path)
	}
	perm := regularMode
	if recorded, ok := s.meta.Modes[c.path]; ok {
		perm = recorded
	} else if c.mode == "100755" {
		perm = executableMode
	}
	f, err := root.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(perm), f.Close())
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
