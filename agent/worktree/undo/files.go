package undo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// recordUnstored records the ignored files, which the snapshot does not store.
// writeTree adds the other paths that are not stored.
func (s *Snapshot) recordUnstored(ctx context.Context) error {
	out, err := s.runShadow(ctx, startIndex, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return err
	}
	s.meta.Unstored = splitNul(out)
	return nil
}

// writeTree stores the current files in an index and returns the index's tree.
// before is its tree until now. If that is unknown (""), because the session starts,
// writeTree records nested repositories, and files that cannot be stored, as
// unstored. Otherwise it stores a placeholder for each such file.
func (s *Snapshot) writeTree(ctx context.Context, index, before string) (string, error) {
	var changed, others []byte
	group, groupCtx := errgroup.WithContext(ctx) // both look at each file, which takes long in a large repository
	group.Go(func() (err error) {
		changed, err = s.runShadow(groupCtx, index, nil, "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all")
		return err
	})
	group.Go(func() (err error) {
		others, err = s.runShadow(groupCtx, index, nil, "ls-files", "-z", "--others", "--exclude-standard")
		return err
	})
	if err := group.Wait(); err != nil {
		return "", err
	}
	atStart := before == ""
	var removed, added bytes.Buffer
	var placeholders []string
	isUnstored, isBehindLink := s.unstoredMatcher(), s.linkMatcher()
	names := slices.DeleteFunc(splitNul(others), func(name string) bool {
		isRepository := strings.HasSuffix(name, "/")
		if isRepository && atStart {
			s.meta.Unstored = append(s.meta.Unstored, name)
		}
		return isRepository || isUnstored(name)
	})
	if len(changed)+len(names) == 0 && !atStart {
		return before, nil
	}
	for _, name := range append(splitNul(changed), names...) {
		result := missing
		if !isBehindLink(name) {
			result = s.checkFile(name, &s.remaining)
		}
		switch {
		case result == storable:
			added.WriteString(name + "\x00")
		case result == missing:
			removed.WriteString(name + "\x00")
		case atStart:
			removed.WriteString(name + "\x00")
			s.meta.Unstored = append(s.meta.Unstored, name)
		default:
			placeholders = append(placeholders, name)
		}
	}
	// Remove deleted files first: a file may have become a folder.
	if err := s.updateIndex(ctx, index, &removed, "--force-remove"); err != nil {
		return "", err
	}
	if err := s.updateIndex(ctx, index, &added, "--add", "--remove", "--replace"); err != nil {
		return "", err
	}
	if err := s.addPlaceholders(ctx, index, placeholders); err != nil {
		return "", err
	}
	out, err := s.runShadow(ctx, index, nil, "write-tree", "--missing-ok")
	return strings.TrimSpace(string(out)), err
}

func (s *Snapshot) updateIndex(ctx context.Context, index string, names *bytes.Buffer, options ...string) error {
	if names.Len() == 0 {
		return nil
	}
	args := slices.Concat([]string{"update-index", "-z"}, options, []string{"--stdin"})
	_, err := s.runShadow(ctx, index, names, args...)
	return err
}

// addPlaceholders adds placeholders for files that cannot be stored.
func (s *Snapshot) addPlaceholders(ctx context.Context, index string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	object, err := s.runShadow(ctx, index, strings.NewReader(placeholder), "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	var entries bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&entries, "100644 %s 0\t%s\x00", bytes.TrimSpace(object), name)
	}
	_, err = s.runShadow(ctx, index, &entries, "update-index", "--replace", "-z", "--index-info")
	return err
}

// placeholder is the content that diffs show for files that cannot be stored.
const placeholder = "(too large, or cannot be read)\n"

// fileStatus is whether a file can be stored.
type fileStatus int

const (
	storable   fileStatus = iota
	missing               // or a folder now
	unstorable            // too large, unreadable, or neither a regular file nor a link
)

// checkFile returns whether a file can be stored. For a regular file that can, it
// subtracts the file's size from remaining, the rest of maxStore in bytes.
func (s *Snapshot) checkFile(name string, remaining *int64) fileStatus {
	file := filepath.Join(s.meta.Top, name)
	info, err := os.Lstat(file)
	switch {
	case err != nil || info.IsDir():
		return missing
	case info.Mode()&fs.ModeSymlink != 0:
		return storable
	case !info.Mode().IsRegular(), info.Size() > maxFile, info.Size() > *remaining:
		return unstorable
	}
	// A process may have replaced it with a pipe meanwhile.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // in the user's repository
	if err != nil || f.Close() != nil {
		return unstorable
	}
	*remaining -= info.Size()
	return storable
}

// linkMatcher returns a function that reports whether one of a file's folders is a
// symbolic link. Git knows no file behind a link.
func (s *Snapshot) linkMatcher() func(name string) bool {
	links := map[string]bool{".": false}
	var isLink func(dir string) bool
	isLink = func(dir string) bool {
		link, known := links[dir]
		if !known {
			info, err := os.Lstat(filepath.Join(s.meta.Top, dir))
			link = isLink(path.Dir(dir)) || err == nil && info.Mode()&fs.ModeSymlink != 0
			links[dir] = link
		}
		return link
	}
	return func(name string) bool { return isLink(path.Dir(name)) }
}

// recordModes records the files' permissions that differ from those that git
// sets.
func (s *Snapshot) recordModes(ctx context.Context) error {
	out, err := s.runShadow(ctx, startIndex, nil, "ls-files", "-z")
	if err != nil {
		return err
	}
	s.meta.Modes = map[string]fs.FileMode{}
	for _, name := range splitNul(out) {
		info, err := os.Lstat(filepath.Join(s.meta.Top, name))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if perm := info.Mode().Perm(); perm != regularMode && perm != executableMode {
			s.meta.Modes[name] = perm
		}
	}
	return nil
}

// Permissions that git sets.
const (
	regularMode    fs.FileMode = 0o644
	executableMode fs.FileMode = 0o755
)
