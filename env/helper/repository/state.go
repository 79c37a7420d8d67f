package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// MaxStatePatch bounds State.Patch, in bytes.
	MaxStatePatch = 4 << 20
	// maxIgnored bounds State.Ignored, maxLeftOut State.LeftOut, in bytes.
	maxIgnored = 256 << 10
	maxLeftOut = 1_000_000
)

// takeState takes the state at the start.
func (s *shadow) takeState(ctx context.Context, most sizes) (State, error) {
	f, err := s.takeFiles(ctx, most)
	if err != nil {
		return State{}, err
	}
	state := State{Tree: f.tree, Submodules: s.start.Submodules}
	if state.Ignored, err = s.listIgnored(ctx); err != nil {
		return State{}, err
	}
	for _, o := range f.omitted {
		stamp, err := s.stamp(ctx, o.Name)
		if err != nil {
			return State{}, err
		}
		state.LeftOut = fmt.Appendf(state.LeftOut, "%s\t%s\x00", stamp, o.Name)
	}
	if len(state.LeftOut) > maxLeftOut {
		return State{}, fmt.Errorf("there are %d files that are too many for a patch: %w", len(f.omitted), errTooLarge)
	}
	if state.Tree == s.req.baseTree {
		return state, nil
	}
	if state.Patch, err = s.patch(ctx, s.base, f.tree, MaxStatePatch); err != nil || len(state.Patch) == 0 {
		return state, err
	}
	tree, err := s.applyToIndex(ctx, s.commit, state.Patch)
	if err == nil && tree != f.tree {
		err = errors.New("the patch of the state at the start gives other files")
	}
	return state, err
}

// leftOutFile is a file that the start left out, with its stamp.
type leftOutFile struct{ stamp, name string }

func (s State) leftOut() (all []leftOutFile) {
	for _, entry := range splitNUL(s.LeftOut) {
		if stamp, name, ok := strings.Cut(entry, "\t"); ok {
			all = append(all, leftOutFile{stamp, name})
		}
	}
	return all
}

// listIgnored lists the files that git ignores. Of a folder with too many files it lists
// only the name.
func (s *shadow) listIgnored(ctx context.Context) ([]byte, error) {
	out, err := s.output(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return nil, err
	}
	room := maxIgnored - len(out)
	var list bytes.Buffer
	for _, name := range splitNUL(out) {
		entry := name + "\x00"
		if strings.HasSuffix(name, "/") {
			if within, ok := s.filesIn(name, room); ok {
				entry, room = within, room-len(within)
			}
		}
		list.WriteString(entry)
		if list.Len() > maxIgnored {
			return nil, fmt.Errorf("the names of ignored files have more than %d bytes: %w", maxIgnored, errTooLarge)
		}
	}
	return list.Bytes(), nil
}

// filesIn lists the files of a folder, NUL-terminated; ok is false if the list has more
// than most bytes.
func (s *shadow) filesIn(folder string, most int) (list string, ok bool) {
	var b strings.Builder
	err := filepath.WalkDir(filepath.Join(s.top, folder), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read cannot be added either
		case entry.Name() == ".git" && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir() || entry.Name() == ".git":
			return nil
		}
		b.WriteString(strings.TrimPrefix(path, s.top+"/"))
		b.WriteByte(0)
		if b.Len() > most {
			return errTooLarge
		}
		return nil
	})
	return b.String(), err == nil
}

// stamp returns a text that changes with a file, or with the content of a folder. In a
// folder, junk and git directories are ignored.
func (s *shadow) stamp(ctx context.Context, name string) (string, error) {
	if !strings.HasSuffix(name, "/") {
		return fileStamp(filepath.Join(s.top, name)), nil
	}
	sum := sha256.New()
	err := s.stampFolder(ctx, sum, name)
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), err
}

// othersIn lists the files of a folder as if it was a repository without a commit. Names
// are relative to the top.
func (s *shadow) othersIn(ctx context.Context, folder string, exclude ...string) ([]string, error) {
	dir := filepath.Join(s.top, folder)
	g := s.with("GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+s.file("none"))
	g.dir = dir
	names, err := g.list(ctx, nil, append([]string{"ls-files", "-z", "--others"}, exclude...)...)
	if _, statErr := os.Stat(dir); err != nil && statErr != nil {
		return nil, nil //nolint:nilerr // a folder that is gone has no files
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(folder, "/") + "/" + name
	}
	return names, err
}

func (s *shadow) stampFolder(ctx context.Context, w io.Writer, folder string) error {
	names, err := s.othersIn(ctx, folder, "-X", s.file("exclude"))
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(s.top, name)
		if strings.HasSuffix(name, "/") { // git lists a repository in the folder only by its name
			if err := s.stampFolder(ctx, w, name); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s %s\x00", name, fileStamp(path)) //nolint:errcheck // a hash takes all
		if info, err := os.Lstat(path); err == nil {
			fmt.Fprintf(w, "%s\x00", info.Mode()) //nolint:errcheck // likewise
		}
	}
	return nil
}

// fileStamp returns the size and the time of a file.
func fileStamp(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %s", info.Size(), info.ModTime().Format("2006-01-02 15:04:05.000000000 -0700"))
}
