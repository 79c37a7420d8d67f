package repository

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// submodule is a submodule with files. They count as files of the repository, so that a
// patch has their changes, as one of git diff --submodule=diff.
type submodule struct {
	path string
	tree string // at its HEAD when the work began
}

// submodules returns those of the start.
func (s *shadow) submodules() []submodule {
	var subs []submodule
	for _, entry := range splitNUL(s.start.Submodules) {
		if tree, path, ok := strings.Cut(entry, "\t"); ok {
			subs = append(subs, submodule{path, tree})
		}
	}
	return subs
}

// addSubmodule remembers the git directory of a submodule.
func (s *shadow) addSubmodule(dir string) {
	known := s.req.Repository.Submodules
	if dir != "" && !slices.ContainsFunc(known, func(k []byte) bool { return string(k) == dir }) {
		s.req.Repository.Submodules = append(known, []byte(dir))
	}
}

// submoduleDir returns the git directory of a submodule. It is empty if the submodule
// has none, or one outside the repository.
func (s *shadow) submoduleDir(path string) string {
	dir := filepath.Join(s.top, path)
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return ""
	}
	git := filepath.Join(dir, ".git")
	if text, ok := readSmall(git, 4096); ok {
		link, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !ok {
			return ""
		}
		if git = link; !filepath.IsAbs(link) {
			git = filepath.Join(dir, link)
		}
	}
	git, err := filepath.EvalSymlinks(git)
	if err != nil || !isBelow(s.top, git) && !isBelow(s.common, git) {
		return ""
	}
	return git
}

// maxSubmodules bounds the number of submodules whose files are followed.
const maxSubmodules = 100

// findSubmodules adds the submodules at the given paths to the state at the start, and
// their objects to the shadow. It reports whether there are any.
func (s *shadow) findSubmodules(ctx context.Context, paths []string) (bool, error) {
	known := s.submodules()
	var entries, stores []byte
	for _, path := range paths {
		if slices.ContainsFunc(known, func(k submodule) bool { return k.path == path }) || len(known) >= maxSubmodules {
			continue
		}
		dir := s.submoduleDir(path)
		if dir == "" {
			continue
		}
		g, err := findGit(s.req.Contained)
		if err != nil {
			return false, err
		}
		tree := g.with("GIT_DIR="+dir).text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
		if len(tree) != len(s.commit) || !IsHash(tree) {
			continue
		}
		s.addSubmodule(dir)
		entries = fmt.Appendf(entries, "%s\t%s\x00", tree, path)
		stores = append(append(stores, quotePath(filepath.Join(dir, "objects"))...), '\n')
	}
	if entries == nil {
		return false, nil
	}
	s.start.Submodules = append(s.start.Submodules, entries...)
	f, err := os.OpenFile(filepath.Join(s.path, "objects", "info", "alternates"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false, err
	}
	if _, err = f.Write(stores); err != nil {
		f.Close() //nolint:errcheck // the first error counts
		return false, err
	}
	return true, f.Close()
}

// withSubmodules returns the tree of the commit in which each submodule is a folder with
// its files.
func (s *shadow) withSubmodules(ctx context.Context) (string, error) {
	g := s.with("GIT_INDEX_FILE=" + s.file("submodules.index"))
	if err := g.do(ctx, nil, "read-tree", s.commit); err != nil {
		return "", err
	}
	for _, sub := range s.submodules() {
		if err := g.forceRemove(ctx, []string{sub.path}); err != nil {
			return "", err
		}
		if err := g.do(ctx, nil, "read-tree", "-i", "--prefix="+sub.path+"/", sub.tree); err != nil {
			return "", err
		}
	}
	return g.writeTree(ctx)
}
