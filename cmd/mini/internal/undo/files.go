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
	"time"
)

// noteForeign notes what is there and is not ours: what is ignored, and
// repositories that git does not know as submodules.
func (s *Snapshot) noteForeign(ctx context.Context) error {
	out, err := s.shadow(ctx, startIndex, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return err
	}
	s.noted.Foreign = split(out)
	return nil
}

// write takes the files as they are into an index, and returns its tree. What it
// cannot take is foreign at the start; later, a line of text stands for it.
func (s *Snapshot) write(ctx context.Context, index string, start bool) (string, error) {
	changed, err := s.shadow(ctx, index, nil, "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return "", err
	}
	others, err := s.shadow(ctx, index, nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	var gone, take bytes.Buffer
	var stand []string
	var room int64 = maxStore
	foreign := s.foreign()
	names := slices.DeleteFunc(split(others), func(name string) bool {
		repository := strings.HasSuffix(name, "/")
		if repository && start {
			s.noted.Foreign = append(s.noted.Foreign, name)
		}
		return repository || foreign(name)
	})
	for _, name := range append(split(changed), names...) {
		switch fit := s.fits(name, &room); {
		case fit == taken:
			take.WriteString(name + "\x00")
		case fit == missing:
			gone.WriteString(name + "\x00")
		case start:
			gone.WriteString(name + "\x00")
			s.noted.Foreign = append(s.noted.Foreign, name)
		default:
			stand = append(stand, name)
		}
	}
	// What is gone goes first: a file may have become a folder.
	if err := s.update(ctx, index, &gone, "--force-remove"); err != nil {
		return "", err
	}
	if err := s.update(ctx, index, &take, "--add", "--remove", "--replace"); err != nil {
		return "", err
	}
	if err := s.standIn(ctx, index, stand); err != nil {
		return "", err
	}
	out, err := s.shadow(ctx, index, nil, "write-tree", "--missing-ok")
	return strings.TrimSpace(string(out)), err
}

func (s *Snapshot) update(ctx context.Context, index string, names *bytes.Buffer, options ...string) error {
	if names.Len() == 0 {
		return nil
	}
	args := slices.Concat([]string{"update-index", "-z"}, options, []string{"--stdin"})
	_, err := s.shadow(ctx, index, names, args...)
	return err
}

// standIn puts a line of text in the place of files that are not taken, another
// one whenever they change.
func (s *Snapshot) standIn(ctx context.Context, index string, names []string) error {
	var entries bytes.Buffer
	var object []byte
	for i, name := range names {
		if i < maxStandIns { // those after it share the last one
			text := "(not a file)\n"
			if info, err := os.Lstat(filepath.Join(s.noted.Top, name)); err == nil {
				text = fmt.Sprintf("(%s of %d bytes, changed at %s, is too large to be shown or cannot be read)\n",
					info.Mode(), info.Size(), info.ModTime().Format(time.RFC3339Nano))
			}
			var err error
			if object, err = s.shadow(ctx, index, strings.NewReader(text), "hash-object", "-w", "--stdin"); err != nil {
				return err
			}
		}
		fmt.Fprintf(&entries, "100644 %s 0\t%s\x00", bytes.TrimSpace(object), name)
	}
	if entries.Len() == 0 {
		return nil
	}
	_, err := s.shadow(ctx, index, &entries, "update-index", "--replace", "-z", "--index-info")
	return err
}

// maxStandIns bounds the runs of git for them.
const maxStandIns = 200

type fit int

const (
	taken fit = iota
	missing
	unfit // too large, or unreadable
)

// fits says whether a file can be taken, and counts down the room for them.
func (s *Snapshot) fits(name string, room *int64) fit {
	path := filepath.Join(s.noted.Top, name)
	info, err := os.Lstat(path)
	switch {
	case err != nil || info.IsDir():
		return missing
	case info.Mode()&fs.ModeSymlink != 0:
		return taken
	case !info.Mode().IsRegular(), info.Size() > maxFile, info.Size() > *room:
		return unfit
	}
	f, err := os.Open(path) //nolint:gosec // of the user's repository
	if err != nil || f.Close() != nil {
		return unfit
	}
	*room -= info.Size()
	return taken
}

// noteModes notes the permissions that are not what git would give.
func (s *Snapshot) noteModes(ctx context.Context) error {
	out, err := s.shadow(ctx, startIndex, nil, "ls-files", "-z")
	if err != nil {
		return err
	}
	s.noted.Modes = map[string]fs.FileMode{}
	for _, name := range split(out) {
		info, err := os.Lstat(filepath.Join(s.noted.Top, name))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if perm := info.Mode().Perm(); perm != plainFile && perm != plainProgram {
			s.noted.Modes[name] = perm
		}
	}
	return nil
}

// Permissions of most files.
const (
	plainFile    fs.FileMode = 0o644
	plainProgram fs.FileMode = 0o755
)
