package repository

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ref is a ref with the object that it names.
type ref struct{ hash, name string }

func (s *scrubber) refs(ctx context.Context, args ...string) ([]ref, error) {
	out, err := s.output(ctx, nil, append([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, args...)...)
	if err != nil {
		return nil, err
	}
	var refs []ref
	for line := range strings.Lines(string(out)) {
		if hash, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			refs = append(refs, ref{hash, name})
		}
	}
	return refs, nil
}

// removeRefs removes all refs but HEAD's branch and the tags in its history, and returns
// these.
func (s *scrubber) removeRefs(ctx context.Context) (kept []ref, err error) {
	all, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	isKept := map[string]bool{}
	for _, r := range all {
		if r.name == s.branch {
			kept = append(kept, r)
		}
	}
	if s.head != "" {
		tags, err := s.refs(ctx, "--merged="+s.head, "refs/tags")
		if err != nil {
			return nil, err
		}
		kept = append(kept, tags...)
	}
	for _, r := range kept {
		isKept[r.name] = true
	}
	s.report.RefsRemoved = len(all) - len(kept)
	if err := s.rewritePackedRefs(kept, isKept); err != nil {
		return nil, err
	}
	if all, err = s.refs(ctx); err != nil {
		return nil, err
	}
	var deletions strings.Builder
	for _, r := range all {
		if !isKept[r.name] {
			deletions.WriteString("option no-deref\ndelete " + r.name + "\n")
		}
	}
	if deletions.Len() > 0 {
		if err := s.do(ctx, []byte(deletions.String()), "update-ref", "--stdin"); err != nil {
			return nil, err
		}
	}
	err = s.own(filepath.Join(s.commonDir, "packed-refs"))
	for _, dir := range []string{s.gitDir, s.commonDir} {
		err = errors.Join(err, removeBrokenRefs(dir, isKept))
	}
	return kept, err
}

// rewritePackedRefs rewrites the packed refs if they have others than the kept ones,
// because git finds nothing in a file that is not sorted.
func (s *scrubber) rewritePackedRefs(kept []ref, isKept map[string]bool) error {
	file := filepath.Join(s.commonDir, "packed-refs")
	text, err := os.ReadFile(file) //nolint:gosec // in the git directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	strange := false
	for line := range strings.Lines(string(text)) {
		hash, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ok && hash != "" && strings.Trim(hash, "0123456789abcdef") == "" && !isKept[name] {
			strange = true
		}
	}
	if !strange {
		return nil
	}
	var b strings.Builder
	for _, r := range kept {
		b.WriteString(r.hash + " " + r.name + "\n")
	}
	return os.WriteFile(file, []byte(b.String()), 0o644) //nolint:gosec // as git does
}

// removeBrokenRefs removes the loose refs that git ignores, and empty folders.
func removeBrokenRefs(dir string, isKept map[string]bool) error {
	refs := filepath.Join(dir, "refs")
	var folders []string
	err := filepath.WalkDir(refs, func(path string, entry fs.DirEntry, err error) error {
		switch name := strings.TrimPrefix(path, dir+"/"); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			if name != "refs" && name != "refs/heads" && name != "refs/tags" {
				folders = append(folders, path)
			}
		case !isKept[name]:
			return os.Remove(path) //nolint:gosec // no process of the agent runs yet
		}
		return nil
	})
	for i := len(folders) - 1; i >= 0; i-- {
		_ = os.Remove(folders[i]) // unless it has refs
	}
	return err
}

// prove asks git again what is left, and completes the report.
func (s *scrubber) prove(ctx context.Context, kept []ref, left storeContent) error {
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	r := &s.report
	r.Objects, r.Commits, r.StrayObjects = len(left.all), len(left.commits), left.stray
	for _, c := range left.commits {
		if !history.has(c) {
			r.StrayCommits++
		}
	}
	if left.lost > 0 {
		return refusal("objects that belong to HEAD are missing")
	}
	if s.text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") != s.head {
		return refusal("HEAD is not what it was")
	}
	refs, err := s.refs(ctx)
	if err != nil {
		return err
	}
	isKept := map[string]bool{}
	for _, k := range kept {
		isKept[k.name] = true
	}
	for _, ref := range refs {
		if !isKept[ref.name] {
			r.StrayRefs++
		}
		if strings.HasPrefix(ref.name, "refs/tags/") {
			r.Tags++
		}
	}
	remotes, err := s.output(ctx, nil, "remote")
	if err != nil {
		return err
	}
	r.Remotes = strings.Count(string(remotes), "\n")
	return filepath.WalkDir(filepath.Join(s.commonDir, "modules"), func(_ string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "objects": // every git directory has one
			r.Submodules++
			return fs.SkipDir
		}
		return nil
	})
}
