package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The indexes of the store: the one of the start, and a copy of it that takes
// the files as they are now.
const (
	startIndex = "index"
	nowIndex   = "index.now"
)

// raw keeps git from converting anything.
const raw = "* -text -eol -crlf -filter -ident -working-tree-encoding\n"

// makeShadow makes a git directory that reads the repository's objects, has its
// own, and takes files byte for byte.
func (s *Snapshot) makeShadow(r *repository) error {
	dir := filepath.Join(s.store, "git")
	for _, name := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	exclude, err := os.ReadFile(filepath.Join(r.common, "info", "exclude"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, text := range map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  config(r.settings),
		"info/attributes":         raw,
		"info/exclude":            string(exclude),
		"objects/info/alternates": quoted(filepath.Join(r.common, "objects")) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	s.keepObjects(filepath.Join(r.common, "objects"))
	return nil
}

// keepObjects links the repository's objects into the store, where that is
// possible, so that they outlive the repository.
func (s *Snapshot) keepObjects(from string) {
	to := filepath.Join(s.store, "git", "objects")
	for _, pattern := range []string{"pack/pack-*.pack", "pack/pack-*.idx", "pack/pack-*.rev", "[0-9a-f][0-9a-f]/*"} {
		found, _ := filepath.Glob(filepath.Join(from, pattern)) // a good pattern
		for _, object := range found[:min(len(found), maxLinks)] {
			name := strings.TrimPrefix(object, from)
			if os.MkdirAll(filepath.Dir(to+name), 0o700) != nil || os.Link(object, to+name) != nil {
				return // another disk, or another owner: they are read where they are
			}
		}
	}
}

// maxLinks bounds the time that links take. Git packs objects long before.
const maxLinks = 20_000

func config(settings map[string]string) string {
	var b strings.Builder
	b.WriteString("[core]\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\thooksPath = /dev/null\n" +
		"\tautocrlf = false\n\tlooseCompression = 0\n\tfsync = none\n\tsplitIndex = false\n\tattributesFile = /dev/null\n" +
		"[index]\n\tsparse = false\n[gc]\n\tauto = 0\n")
	if settings["extensions.objectformat"] != "" {
		b.WriteString("[core]\n\trepositoryFormatVersion = 1\n")
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		section, name, _ := strings.Cut(key, ".")
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, quoted(settings[key]))
	}
	return b.String()
}

// quoted is a value as git's files write it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s) + `"`
}

// readIndex takes over which files the repository's index has, and what git knows
// of none of them: what is not, byte for byte, what the index has is found by
// reading all files, since filters and line ends may be in between.
func (s *Snapshot) readIndex(ctx context.Context, r *repository) error {
	entries, err := r.ask(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	if _, err := s.shadow(ctx, startIndex, bytes.NewReader(entries), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	_, err = s.shadow(ctx, startIndex, nil, "update-index", "-q", "--unmerged", "--ignore-submodules", "--refresh")
	return err
}

// copyFile copies a file with its time, by which git knows which files may have
// changed in the moment an index was written. A missing one is none.
func copyFile(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // an index
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // ours
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
