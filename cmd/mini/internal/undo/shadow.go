package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	sparse, err := os.ReadFile(filepath.Join(r.dir, "info", "sparse-checkout"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, text := range map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  config(r.settings),
		"info/attributes":         raw,
		"info/exclude":            string(exclude),
		"info/sparse-checkout":    string(sparse),
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

// copyIndex takes the repository's index over, since it knows which files git
// need not read, and returns a sum of it.
func (s *Snapshot) copyIndex(ctx context.Context, r *repository) (string, error) {
	to := filepath.Join(s.store, "git", startIndex)
	if err := copyFile(filepath.Join(r.dir, "index"), to); err != nil {
		return "", fmt.Errorf("copy index: %w", err)
	}
	if _, err := s.shadow(ctx, startIndex, nil, "ls-files", "--stage", "-z"); err != nil {
		// A split one, which is of two files, or a broken one.
		if ctx.Err() != nil {
			return "", err
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		entries, err := r.ask(ctx, "ls-files", "--stage", "-z")
		if err != nil {
			return "", err
		}
		if _, err := s.shadow(ctx, startIndex, bytes.NewReader(entries), "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	return r.staged(ctx)
}

// staged is a sum of what the repository's index has.
func (r *repository) staged(ctx context.Context) (string, error) {
	out, err := r.ask(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(out)
	return hex.EncodeToString(sum[:]), nil
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

// distrust has git read files again that are not, byte for byte, what the
// index has of them: their line ends are converted, or they go through a
// filter. It takes those whose size differs, and all that have a filter.
// Bits that hide changes are taken away, but for those of a sparse checkout.
func (s *Snapshot) distrust(ctx context.Context, r *repository) error {
	out, err := s.shadow(ctx, startIndex, nil, "ls-files", "--stage", "--debug", "-z")
	if err != nil {
		return err
	}
	entries := parseDebug(out)
	var ask strings.Builder
	for _, e := range entries {
		ask.WriteString(e.object + "\n")
	}
	sizes, err := s.shadow(ctx, startIndex, strings.NewReader(ask.String()), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return err
	}
	lines := strings.Split(string(sizes), "\n")
	if len(lines) < len(entries) {
		return errors.New("git cat-file: too few answers")
	}
	filtered, err := r.filtered(ctx, entries)
	if err != nil {
		return err
	}
	var again bytes.Buffer
	for i, e := range entries {
		if e.mode != "160000" && (lines[i] != e.size || filtered[e.path]) {
			fmt.Fprintf(&again, "%s %s 0\t%s\x00", e.mode, e.object, e.path)
		}
	}
	if again.Len() > 0 {
		if _, err := s.shadow(ctx, startIndex, &again, "update-index", "-z", "--index-info"); err != nil {
			return err
		}
	}
	return s.unhide(ctx, r)
}

func (s *Snapshot) unhide(ctx context.Context, r *repository) error {
	out, err := s.shadow(ctx, startIndex, nil, "ls-files", "-v", "-z")
	if err != nil {
		return err
	}
	sparse, _ := strconv.ParseBool(r.settings["core.sparsecheckout"])
	var assumed, skipped bytes.Buffer
	for _, line := range split(out) {
		tag, path, _ := strings.Cut(line, " ")
		if tag != strings.ToUpper(tag) {
			assumed.WriteString(path + "\x00")
		}
		if strings.ToUpper(tag) == "S" && !sparse {
			skipped.WriteString(path + "\x00")
		}
	}
	for option, names := range map[string]*bytes.Buffer{"--no-assume-unchanged": &assumed, "--no-skip-worktree": &skipped} {
		if names.Len() == 0 {
			continue
		}
		if _, err := s.shadow(ctx, startIndex, names, "update-index", "-z", option, "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// entry is one of an index.
type entry struct {
	mode, object, path string
	size               string // of the file
}

// parseDebug reads ls-files --stage --debug -z: entries end with a NUL, and
// lines of what is known of the file come after it.
func parseDebug(out []byte) []entry {
	var entries []entry
	var last *entry // whose lines come
	for part := range bytes.SplitSeq(out, []byte{0}) {
		text := string(part)
		if strings.HasPrefix(text, "  ctime: ") {
			size, rest := cutFacts(text)
			if last != nil {
				last.size = size
			}
			text = rest
		}
		last = nil
		head, path, ok := strings.Cut(text, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 3 || fields[2] != "0" { // a conflict's are read again anyway
			continue
		}
		entries = append(entries, entry{mode: fields[0], object: fields[1], path: path})
		last = &entries[len(entries)-1]
	}
	return entries
}

// cutFacts finds the size in the lines before the next entry.
func cutFacts(text string) (size, rest string) {
	_, after, _ := strings.Cut(text, "\n  size: ")
	size, after, _ = strings.Cut(after, "\t")
	_, rest, _ = strings.Cut(after, "\n")
	return size, rest
}

// filtered are the entries that go through a filter.
func (r *repository) filtered(ctx context.Context, entries []entry) (map[string]bool, error) {
	found := map[string]bool{}
	if !r.filters {
		return found, nil
	}
	var names strings.Builder
	for _, e := range entries {
		names.WriteString(e.path + "\x00")
	}
	out, err := r.askWith(ctx, strings.NewReader(names.String()), "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	for f := range slices.Chunk(split(out), 3) {
		if len(f) == 3 && f[2] != "unspecified" && f[2] != "unset" {
			found[f[0]] = true
		}
	}
	return found, nil
}
