package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shadow is a git directory with its own index, objects, settings and attributes, which
// reads the objects of the real one. Of the real one it uses only the objects, the index
// and the lists of ignored files, so settings that the agent changed do not apply. It
// leaves no trace in the repository.
type shadow struct {
	git         // on the shadow and the working tree
	req         Request
	dir, common string // the real git directories
	top         string
	tmp, path   string // the temporary folder, and the shadow in it
	// commit is the commit of the start with its submodules, base what patches are taken
	// against: the tree of the start.
	commit, base string
	start        State // empty before it is known
	infoAttrs    []byte
}

// newShadow makes the shadow of the repository of a request.
func newShadow(ctx context.Context, req Request) (_ *shadow, err error) {
	repo := req.Repository
	s := &shadow{
		req: req, dir: string(repo.GitDir), common: string(repo.CommonDir), top: string(repo.Top),
		commit: req.Start.Base, base: req.Start.Base, start: *req.Start,
	}
	if s.git, err = findGit(false); err != nil {
		return nil, missing("no git")
	}
	places := tempPlaces(s.common, req.Contained || len(req.Bound) > 0)
	var index int64
	if info, err := os.Lstat(filepath.Join(s.dir, "index")); err == nil && info.Size() < maxIndex {
		index = info.Size() >> 10
	}
	if s.tmp, err = makeTemp(places, req.Tag, req.room+5*index, freeKiB); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.path = filepath.Join(s.tmp, "git")
	if err := s.fill(); err != nil {
		return nil, err
	}
	s.git.dir = s.top
	s.git = s.with("GIT_DIR="+s.path, "GIT_WORK_TREE="+s.top, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+s.file("gitconfig"))
	return s, s.makeBase(ctx)
}

func (s *shadow) close() error { return os.RemoveAll(s.tmp) }

// file returns the path of a temporary file.
func (s *shadow) file(name string) string { return filepath.Join(s.tmp, name) }

func (s *shadow) fill() error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(s.path, dir), 0o700); err != nil {
			return err
		}
	}
	// A program that writes settings replaces the file gitconfig; as root it would replace
	// /dev/null.
	files := map[string][]byte{
		"HEAD": []byte(s.commit + "\n"), "config": settingsFile(s.commit, s.req.Repository.Settings), "../gitconfig": nil,
		"../exclude": []byte(strings.Join(s.req.Exclude, "\n") + "\n"), "../junk": s.junk(),
	}
	for _, name := range []string{"exclude", "attributes", "sparse-checkout"} {
		for _, dir := range []string{s.common, s.dir} {
			if text, ok := readSmall(filepath.Join(dir, "info", name), 1_000_000); ok {
				files["info/"+name] = append(text, '\n')
			}
		}
	}
	s.infoAttrs = files["info/attributes"]
	files["info/exclude"] = slices.Concat(files["info/exclude"], files["../junk"])
	stores := [][]byte{quotePath(filepath.Join(s.common, "objects"))}
	for _, sub := range s.submodules() {
		s.addSubmodule(s.submoduleDir(sub.path))
	}
	for _, dir := range s.req.Repository.Submodules {
		stores = append(stores, quotePath(filepath.Join(string(dir), "objects")))
	}
	kept, err := s.restoreKept()
	if err != nil {
		return err
	}
	stores = append(stores, kept...)
	files["objects/info/alternates"] = append(bytes.Join(stores, []byte("\n")), '\n')
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.path, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// quotePath quotes a path for a list of object stores.
func quotePath(path string) []byte {
	if strings.ContainsAny(path, "\"\n\\") {
		return []byte(quoteSetting(path))
	}
	return []byte(path)
}

// junk returns the gitignore file of what never is new: the patterns of the request, the
// files that the start left out, and the temporary folder.
func (s *shadow) junk() []byte {
	var b bytes.Buffer
	for _, pattern := range s.req.Exclude {
		b.WriteString(pattern + "\n")
	}
	for _, l := range s.start.leftOut() {
		b.WriteString(excludePattern(l.name) + "\n")
	}
	if isBelow(s.top, s.tmp) { // for example a repository in /tmp
		b.WriteString(excludePattern(strings.TrimPrefix(strings.TrimPrefix(s.tmp, s.top), "/")) + "/\n")
	}
	return b.Bytes()
}

// readSmall reads a regular file of less than limit bytes.
func readSmall(path string, limit int64) ([]byte, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= limit {
		return nil, false
	}
	text, err := os.ReadFile(path) //nolint:gosec // in the git directory
	return text, err == nil
}

// makeBase sets base to the tree that patches are taken against, and commit to that of
// the commit with its submodules. mini keeps the state at the start as a patch, because
// the agent may remove anything in the sandbox.
func (s *shadow) makeBase(ctx context.Context) error {
	if s.start.Tree == "" {
		return nil
	}
	if len(s.start.Submodules) > 0 {
		tree, err := s.withSubmodules(ctx)
		if err != nil {
			return errors.Join(errors.New("the submodules that the work began with cannot be made again"), err)
		}
		s.commit = tree
	}
	s.base = s.start.Tree
	if len(s.start.Patch) == 0 {
		return nil
	}
	tree, err := s.applyToIndex(ctx, s.commit, s.start.Patch)
	if err != nil && !errors.Is(err, errNoSpace) && context.Cause(ctx) == nil {
		if s.do(ctx, nil, "cat-file", "-e", s.commit) != nil {
			return errCommitGone
		}
	}
	if err != nil || tree != s.start.Tree {
		return errors.Join(errors.New("the state that the work began with cannot be made again"), err)
	}
	return nil
}

var errCommitGone = errors.New("the commit that the work began with is gone from the repository")

func (g git) writeTree(ctx context.Context) (string, error) {
	out, err := g.output(ctx, nil, "write-tree")
	tree := strings.TrimSpace(string(out))
	if err == nil && !IsHash(tree) {
		err = fmt.Errorf("git write-tree: %q", tree)
	}
	return tree, err
}
