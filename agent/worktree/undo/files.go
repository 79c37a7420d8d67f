package undo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recordForeign records the existing paths that are not stored: ignored files, and nested
// repositories that are not submodules.
func (s *Snapshot) recordForeign(ctx context.Context) error {
	out, err := s.runShadow(ctx, startIndex, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return err
	}
	s.meta.Foreign = splitNul(out)
	return nil
}

// writeTree stores the current files in an index and returns its tree. Files that cannot be
// stored are foreign at the start; later, a placeholder replaces them.
func (s *Snapshot) writeTree(ctx context.Context, index string, start bool) (string, error) {
	changed, err := s.runShadow(ctx, index, nil, "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return "", err
	}
	others, err := s.runShadow(ctx, index, nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	var removed, added bytes.Buffer
	var placeholders []string
	var room int64 = maxStore
	foreign := s.foreignMatcher()
	names := slices.DeleteFunc(splitNul(others), func(name string) bool {
		repository := strings.HasSuffix(name, "/")
		if repository && start {
			s.meta.Foreign = append(s.meta.Foreign, name)
		}
		return repository || foreign(name)
	})
	for _, name := range append(splitNul(changed), names...) {
		switch result := s.checkFile(name, &room); {
		case result == storable:
			added.WriteString(name + "\x00")
		case result == missing:
			removed.WriteString(name + "\x00")
		case start:
			removed.WriteString(name + "\x00")
			s.meta.Foreign = append(s.meta.Foreign, name)
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

// placeholder is the content shown in diffs of files that cannot be stored.
const placeholder = "(too large, or cannot be read)\n"

// fileFit says whether a file can be stored.
type fileFit int

const (
	storable fileFit = iota
	missing
	unstorable // too large or unreadable
)

// checkFile says whether a file can be stored, and decrements the remaining room.
func (s *Snapshot) checkFile(name string, room *int64) fileFit {
	path := filepath.Join(s.meta.Top, name)
	info, err := os.Lstat(path)
	switch {
	case err != nil || info.IsDir():
		return missing
	case info.Mode()&fs.ModeSymlink != 0:
		return storable
	case !info.Mode().IsRegular(), info.Size() > maxFile, info.Size() > *room:
		return unstorable
	}
	f, err := os.Open(path) //nolint:gosec // in the user's repository
	if err != nil || f.Close() != nil {
		return unstorable
	}
	*room -= info.Size()
	return storable
}

// recordModes records the permissions that differ from those that git sets.
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
