package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// scrubber removes everything from a repository that is neither HEAD, its history, the
// tags in it, nor staged. HEAD, the index and the files do not change.
type scrubber struct {
	*found
	objects    string // folder of the objects
	uid, gid   int    // of the git directory; new files get them
	branch     string // at HEAD; empty if HEAD is detached
	detachedAt string // the name at which HEAD was detached, which only git's reflog has
	partial    bool   // objects of the history may be missing
	report     ScrubReport
}

func scrub(ctx context.Context, req Request) (Response, error) {
	f, err := find(ctx, req)
	if err != nil {
		return Response{}, err
	}
	if req.Inventory != "" {
		if sum, err := f.inventory(ctx); err == nil && sum == req.Inventory {
			return Response{Unchanged: true}, nil
		}
	}
	s := &scrubber{found: f, objects: filepath.Join(f.commonDir, "objects")}
	if err := s.scrub(ctx); err != nil {
		return Response{}, err
	}
	res := Response{Report: &s.report}
	if req.Op == Prepare && s.report.IsClean() {
		res.Inventory, err = f.inventory(ctx)
	}
	return res, err
}

func (s *scrubber) scrub(ctx context.Context) error {
	if err := s.checkConfined(); err != nil {
		return err
	}
	room, err := s.roomForPacks(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(s.commonDir)
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t) //nolint:errcheck // its type on Linux
	s.uid, s.gid = int(stat.Uid), int(stat.Gid)
	if err := s.removeRemotes(ctx); err != nil {
		return err
	}
	s.rememberHead(ctx)
	if err := s.removeNames(); err != nil {
		return err
	}
	kept, err := s.removeRefs(ctx)
	if err != nil {
		return err
	}
	if err := s.removeLFS(ctx); err != nil {
		return err
	}
	if err := s.keepHistory(ctx); err != nil {
		return err
	}
	left, err := s.removeObjects(ctx, kept, room)
	if err != nil {
		return err
	}
	if err := s.updateServerInfo(ctx); err != nil {
		return err
	}
	return s.prove(ctx, kept, left)
}

// checkConfined refuses a linked worktree, a submodule, and links in place of git's files
// if the repository has to be in one folder: the changes would affect another repository.
func (s *scrubber) checkConfined() error {
	if s.bound == "" {
		return nil
	}
	for _, dir := range []string{s.gitDir, s.commonDir} {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		if real != dir || !isBelow(s.bound, dir) {
			return refusal(fmt.Sprintf("its git directory %s is not in the work folder", dir))
		}
		link, err := findLink(dir)
		if err != nil {
			return err
		}
		if link != "" {
			return refusal("its git directory has links, which may lead to another's: " + link)
		}
	}
	return nil
}

// roomForPacks returns the space for a pack beside the existing ones, in KiB.
func (s *scrubber) roomForPacks(ctx context.Context) (int64, error) {
	out, err := s.output(ctx, nil, "count-objects", "-v")
	if err != nil && context.Cause(ctx) != nil {
		return 0, err
	}
	var sum int64
	for line := range strings.Lines(string(out)) {
		var n int64
		if _, err := fmt.Sscanf(line, "size: %d", &n); err == nil {
			sum += n
		}
		if _, err := fmt.Sscanf(line, "size-pack: %d", &n); err == nil {
			sum += n
		}
	}
	return sum, nil
}

// removeRemotes removes the settings of remotes and branches. Of a partial clone it also
// removes that objects are fetched when they are missing, if HEAD does not need them.
func (s *scrubber) removeRemotes(ctx context.Context) error {
	all, err := s.list(ctx, nil, "config", "--local", "-z", "--list", "--name-only")
	if err != nil {
		return err
	}
	promised, err := filepath.Glob(filepath.Join(s.objects, "pack", "*.promisor"))
	if err != nil {
		return err
	}
	s.partial = len(promised) > 0
	var sections []string
	for _, key := range all {
		section := key[:max(0, strings.LastIndexByte(key, '.'))]
		if (strings.HasPrefix(section, "remote.") || strings.HasPrefix(section, "branch.")) && !slices.Contains(sections, section) {
			sections = append(sections, section)
		}
		switch {
		case key == "extensions.refstorage":
			return refusal("its refs are stored in a way that mini does not know")
		case key == "extensions.partialclone", strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor"):
			s.partial = true
		}
	}
	if s.partial {
		if err := s.completeHead(ctx); err != nil {
			return err
		}
	}
	for _, section := range sections {
		if err := s.do(ctx, nil, "config", "--local", "--remove-section", section); err != nil {
			return err
		}
	}
	if slices.Contains(all, "extensions.partialclone") {
		if err := s.do(ctx, nil, "config", "--local", "--unset-all", "extensions.partialclone"); err != nil {
			return err
		}
	}
	for _, file := range promised {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return s.own(filepath.Join(s.commonDir, "config"))
}

// completeHead checks that a partial clone has the files of HEAD.
func (s *scrubber) completeHead(ctx context.Context) error {
	if s.head == "" {
		return nil
	}
	missing := 0
	err := s.each(ctx, nil, '\n', func(line []byte) error {
		if len(line) > 0 && line[0] == '?' {
			missing++
		}
		return nil
	}, "rev-list", "--objects", "--missing=print", "--no-walk", "--indexed-objects", s.head)
	if err != nil {
		return err
	}
	if missing > 0 {
		return refusal(fmt.Sprintf("it is a partial clone that lacks %d objects of HEAD, which only its remote has", missing))
	}
	return nil
}

// rememberHead finds out what HEAD is.
func (s *scrubber) rememberHead(ctx context.Context) {
	s.branch = s.text(ctx, "symbolic-ref", "--quiet", "HEAD")
	s.report.Head, s.report.Method = s.head, "none"
	if s.branch != "" {
		return
	}
	for line := range strings.Lines(s.text(ctx, "branch", "--no-color")) {
		for _, start := range []string{"* (HEAD detached at ", "* (HEAD detached from "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), start); ok {
				s.detachedAt = strings.TrimSuffix(name, ")")
			}
		}
	}
}

// removeNames removes grafts, replacements and caches, which change the visible history,
// and states, logs and lists that name other commits.
func (s *scrubber) removeNames() error {
	var errs []error
	remove := func(dir string, patterns ...string) {
		for _, pattern := range patterns {
			paths := []string{filepath.Join(dir, pattern)}
			if strings.ContainsRune(pattern, '*') {
				entries, _ := os.ReadDir(filepath.Join(dir, filepath.Dir(pattern))) // a missing folder has none
				paths = nil
				for _, e := range entries {
					if ok, _ := filepath.Match(filepath.Base(pattern), e.Name()); ok { // the patterns are valid
						paths = append(paths, filepath.Join(dir, filepath.Dir(pattern), e.Name()))
					}
				}
			}
			for _, path := range paths {
				errs = append(errs, os.RemoveAll(path))
			}
		}
	}
	remove(s.objects, "pack/multi-pack-index*", "info/commit-graph*")
	remove(s.commonDir, "info/grafts", "refs/replace")
	for _, dir := range []string{s.gitDir, s.commonDir} {
		remove(dir, "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "MERGE_AUTOSTASH", "AUTO_MERGE",
			"CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "SQUASH_MSG", "COMMIT_EDITMSG",
			"rebase-apply", "rebase-merge", "sequencer", "logs", "rr-cache", "lost-found", "remotes", "gc.log", "gc.pid",
			"BISECT_*", "*.bundle", "branches/*")
	}
	worktrees := filepath.Join(s.commonDir, "worktrees")
	entries, _ := os.ReadDir(worktrees) // a missing folder has none
	for _, e := range entries {
		if path := filepath.Join(worktrees, e.Name()); path != s.gitDir {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	_ = os.Remove(worktrees) // unless it has one
	if s.gitDir != s.commonDir {
		// This is a linked worktree. Reset the main one.
		remove(s.commonDir, "index")
		name := filepath.Join(s.commonDir, "HEAD")
		head, err := os.ReadFile(name) //nolint:gosec // in the git directory
		if err == nil && !strings.HasPrefix(string(head), "ref:") {
			err = os.WriteFile(name, []byte(s.head+"\n"), 0o644) //nolint:gosec // as git does
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// own gives a file that git made the owner of the git directory.
func (s *scrubber) own(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_ = os.Lchown(path, s.uid, s.gid) // only root can
	return nil
}

// removeLFS removes the files of Git LFS, except those that the index or HEAD points to.
func (s *scrubber) removeLFS(ctx context.Context) error {
	dir := filepath.Join(s.commonDir, "lfs")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "objects" {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	places := []string{"--cached"}
	if s.head != "" {
		places = append(places, s.head)
	}
	const pointer = "oid sha256:"
	pointers := map[string]bool{}
	for _, place := range places {
		out, err := s.output(ctx, nil, "grep", "-ahe", "^"+pointer+"[0-9a-f]*$", place)
		if exit, ok := errors.AsType[*gitError](err); err != nil && (!ok || exit.code != 1) {
			return err
		}
		for line := range strings.Lines(string(out)) {
			pointers[strings.TrimPrefix(strings.TrimSpace(line), pointer)] = true
		}
	}
	return filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir() || pointers[entry.Name()]:
			return err
		}
		return os.Remove(path) //nolint:gosec // no process of the agent runs yet
	})
}

// keepHistory keeps of the list of a shallow clone what belongs to HEAD, and one entry of
// the reflog, so that git status still reports where HEAD was detached.
func (s *scrubber) keepHistory(ctx context.Context) error {
	shallow := filepath.Join(s.commonDir, "shallow")
	list, err := os.ReadFile(shallow) //nolint:gosec // in the git directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if list == nil && s.detachedAt == "" {
		return nil
	}
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	if list != nil {
		var kept strings.Builder
		for line := range strings.Lines(string(list)) {
			if h, ok := parseHash([]byte(strings.TrimSpace(line))); ok && history.has(h) {
				kept.WriteString(line)
			}
		}
		if kept.Len() == 0 {
			err = os.Remove(shallow)
		} else {
			err = os.WriteFile(shallow, []byte(kept.String()), 0o644) //nolint:gosec // as git does
		}
		if err != nil {
			return err
		}
	}
	if s.detachedAt == "" {
		return nil
	}
	from, to := s.head, s.head
	if commit := s.text(ctx, "rev-parse", "--verify", "--quiet", s.detachedAt+"^{commit}"); commit != "" {
		if h, ok := parseHash([]byte(commit)); ok && history.has(h) {
			from, to = commit, s.detachedAt
		}
	}
	logs := filepath.Join(s.gitDir, "logs")
	line := fmt.Sprintf("%s %s mini <mini> 1 +0000\tcheckout: moving from %s to %s\n", from, from, from, to)
	err = errors.Join(os.MkdirAll(logs, 0o755), os.WriteFile(filepath.Join(logs, "HEAD"), []byte(line), 0o644)) //nolint:gosec // as git does
	return errors.Join(err, s.own(logs), s.own(filepath.Join(logs, "HEAD")))
}

// updateServerInfo updates the lists of refs and packs for dumb HTTP servers.
func (s *scrubber) updateServerInfo(ctx context.Context) error {
	lists := []string{filepath.Join(s.commonDir, "info", "refs"), filepath.Join(s.objects, "info", "packs")}
	had := false
	for _, list := range lists {
		had = os.Remove(list) == nil || had
	}
	if !had {
		return nil
	}
	err := s.do(ctx, nil, "update-server-info")
	for _, list := range lists {
		err = errors.Join(err, s.own(list))
	}
	return err
}
