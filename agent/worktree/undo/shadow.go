package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/userdirs"
)

// The git indexes in the store: startIndex is that of the snapshot,
// currentIndex a copy that is updated with the current files. It keeps the times of
// all files, so that an update reads only files that have changed since the last one.
const (
	startIndex   = "index"
	currentIndex = "index.now"
)

// rawAttributes disables all conversions of file contents by git.
const rawAttributes = "* -text -eol -crlf -filter -ident -working-tree-encoding\n"

// makeShadow creates a git directory that reads the repository's objects, has its own objects,
// and stores files byte for byte.
func (s *Snapshot) makeShadow(r *userRepository) error {
	dir := filepath.Join(s.store, "git")
	for _, name := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{
		"HEAD":            "ref: refs/heads/none\n",
		"config":          shadowConfig(r.settings),
		"info/attributes": rawAttributes,
	}
	if r.common != "" {
		files["objects/info/alternates"] = quoteConfig(filepath.Join(r.common, "objects")) + "\n"
		name := filepath.Join(r.common, "info", "exclude")
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() { // a pipe would block
			exclude, err := os.ReadFile(name) //nolint:gosec // in the user's repository
			if err != nil {
				return err
			}
			files["info/exclude"] = string(exclude)
		}
	}
	files["info/exclude"] += "\n" + excludeOwn(r.top)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if r.common != "" {
		s.linkObjects(filepath.Join(r.common, "objects"))
	}
	return nil
}

// excludeOwn returns the pattern that keeps mini's own files out of a snapshot of a folder above them,
// such as the user's home: a session writes there, and an undo would remove them.
func excludeOwn(top string) string {
	own, err := filepath.Rel(top, filepath.Join(realPath(userdirs.StateDir()), "mini"))
	if err != nil || !filepath.IsLocal(own) || own == "." || strings.Contains(own, "\n") {
		return ""
	}
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	return "/" + escape.Replace(filepath.ToSlash(own)) + "/\n"
}

// linkObjects makes hard links to the repository's objects in the store, if
// possible, so that the snapshot does not depend on later changes of the
// repository.
func (s *Snapshot) linkObjects(from string) {
	to := filepath.Join(s.store, "git", "objects")
	for _, pattern := range []string{"pack/pack-*.pack", "pack/pack-*.idx", "pack/pack-*.rev", "[0-9a-f][0-9a-f]/*"} {
		found, _ := filepath.Glob(filepath.Join(from, pattern)) // the pattern is valid
		for _, object := range found[:min(len(found), maxLinks)] {
			name := strings.TrimPrefix(object, from)
			if os.MkdirAll(filepath.Dir(to+name), 0o700) != nil || os.Link(object, to+name) != nil {
				return // another disk or owner: git reads the objects in the repository
			}
		}
	}
}

// maxLinks bounds the number of links for each pattern in linkObjects, and so the
// time for linking. Git packs loose objects before there are so many.
const maxLinks = 20_000

func shadowConfig(settings map[string]string) string {
	var b strings.Builder
	b.WriteString("[core]\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\thooksPath = /dev/null\n" +
		"\tautocrlf = false\n\tlooseCompression = 0\n\tfsync = none\n\tsplitIndex = false\n\tattributesFile = /dev/null\n\tquotePath = false\n" +
		"[index]\n\tsparse = false\n[gc]\n\tauto = 0\n")
	if settings["extensions.objectformat"] != "" {
		b.WriteString("[core]\n\trepositoryFormatVersion = 1\n")
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		section, name, _ := strings.Cut(key, ".")
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, quoteConfig(settings[key]))
	}
	return b.String()
}

// quoteConfig quotes a value for git's configuration files.
func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s) + `"`
}

// readIndex copies the entries of the repository's index without their cached
// file states. Git then reads all files once, because filters and line ends can
// make a file differ from its entry.
func (s *Snapshot) readIndex(ctx context.Context, r *userRepository) error {
	if r.common == "" {
		return nil
	}
	entries, err := r.run(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	if _, err := s.runShadow(ctx, startIndex, bytes.NewReader(entries), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	_, err = s.runShadow(ctx, startIndex, nil, "update-index", "-q", "--unmerged", "--ignore-submodules", "--refresh")
	return err
}

// copyFile copies an index with its modification time, which git needs to
// detect files that changed while the index was written. If the index does not
// exist, copyFile does nothing.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from) //nolint:gosec // an index
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, data, 0o600), os.Chtimes(to, info.ModTime(), info.ModTime())) //nolint:gosec // both are in the store
}
