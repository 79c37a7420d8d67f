package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// sizes are the maximum sizes of a new and of a changed file, in bytes. A new folder may
// be four times as large as a new file.
type sizes struct{ newFile, changedFile int64 }

// files is the state of the current files.
type files struct {
	tree       string     // what git add -A would add, without what is omitted
	omitted    []Omission // in bytes as on the disk
	attributes []string   // the .gitattributes files of the base
}

func (f *files) omit(name, reason string) {
	f.omitted = append(f.omitted, Omission{name, reason})
}

// takeFiles stores the current files: all that git add -A would add, without junk, files
// that are too large and files that git rejects. Files that the agent added explicitly
// are included even if ignored, except junk.
func (s *shadow) takeFiles(ctx context.Context, most sizes) (*files, error) {
	f := &files{}
	forced, err := s.copyIndex(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.readBase(ctx); err != nil {
		return nil, err
	}
	index, err := s.listIndex(ctx)
	if err != nil {
		return nil, err
	}
	for s.start.Tree == "" { // of the state at the start: find submodules, and those in them
		found, err := s.findSubmodules(ctx, index.links)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		if s.base, err = s.withSubmodules(ctx); err != nil {
			return nil, err
		}
		if err := s.readBase(ctx); err != nil {
			return nil, err
		}
		if index, err = s.listIndex(ctx); err != nil {
			return nil, err
		}
	}
	if s.start.Tree == "" {
		s.commit = s.base
	}
	f.attributes = index.attributes
	if err := s.clearFlags(ctx, index); err != nil {
		return nil, err
	}
	if err := s.checkLeftOut(ctx, f, index); err != nil {
		return nil, err
	}
	// Compare the content of files whose times changed. The exit code says that some did.
	if _, err := s.run(ctx, nil, nil, "update-index", "-q", "--ignore-submodules", "--refresh"); err != nil && !isExit(err) {
		return nil, err
	}
	deleted, changed, err := s.changedFiles(ctx)
	if err != nil {
		return nil, err
	}
	// Remove deleted files first: a file that became a folder hides the folder's content.
	if err := s.forceRemove(ctx, deleted); err != nil {
		return nil, err
	}
	added, err := s.newFiles(ctx, f, forced, most.newFile)
	if err != nil {
		return nil, err
	}
	names := append(s.fitting(f, added, most.newFile), s.fitting(f, changed, most.changedFile)...)
	if err := s.add(ctx, f, names); err != nil {
		return nil, err
	}
	f.tree, err = s.writeTree(ctx)
	return f, err
}

func isExit(err error) bool {
	_, ok := errors.AsType[*gitError](err)
	return ok && !errors.Is(err, errNoSpace)
}

// copyIndex copies the agent's index, so that git does not read every file again, and
// returns the files that were added to it since the base. A shared or broken index is
// not used.
func (s *shadow) copyIndex(ctx context.Context) (forced []string, err error) {
	theirs, index := filepath.Join(s.dir, "index"), filepath.Join(s.path, "index")
	info, err := os.Lstat(theirs)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= maxIndex {
		return nil, os.RemoveAll(index) // without an index git reads every file
	}
	if err := copyFile(theirs, index); err != nil {
		return nil, err
	}
	// Git uses the time of the index to detect changes within the second in which it was
	// written.
	if err := os.Chtimes(index, info.ModTime(), info.ModTime()); err != nil {
		return nil, err
	}
	forced, err = s.list(ctx, nil, "diff-index", "--cached", "-z", "--name-only", "--no-renames", "--ignore-submodules=all", "--diff-filter=A", s.base)
	if isExit(err) {
		return nil, os.RemoveAll(index)
	}
	if err != nil || len(forced) == 0 {
		return nil, err
	}
	junk, err := s.list(ctx, nil, "ls-files", "-z", "-c", "-i", "-X", s.file("junk"))
	if err != nil {
		return nil, err
	}
	isJunk := setOf(junk)
	return slices.DeleteFunc(forced, func(name string) bool { return isJunk[name] }), nil
}

func copyFile(from, to string) error {
	r, err := os.Open(from) //nolint:gosec // in the git directory
	if err != nil {
		return err
	}
	defer r.Close()         //nolint:errcheck // nothing was written
	w, err := os.Create(to) //nolint:gosec // in the temporary folder
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// maxIndex is the size from which an index is not copied, in bytes.
const maxIndex = 200_000_000

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// readBase sets the index to the base.
func (s *shadow) readBase(ctx context.Context) error {
	err := s.do(ctx, nil, "read-tree", "--reset", s.base)
	if isExit(err) && s.do(ctx, nil, "cat-file", "-e", s.base) != nil {
		return errCommitGone
	}
	return err
}

// index is what matters of the entries of the index.
type index struct {
	attributes []string // names of .gitattributes files
	links      []string // paths of submodules
	hidden     []string // files with a bit that hides changes, of either kind
	leftOut    []string // files that the start left out
}

func (s *shadow) listIndex(ctx context.Context) (index, error) {
	left := map[string]bool{}
	for _, l := range s.start.leftOut() {
		left[l.name] = true
	}
	var x index
	err := s.each(ctx, nil, 0, func(line []byte) error {
		entry := string(line) // "H 100644 HASH 0\tNAME"
		info, name, ok := strings.Cut(entry, "\t")
		if !ok || len(info) < 8 {
			return fmt.Errorf("git ls-files: %.100q", entry)
		}
		if info[0] != 'H' && (info[0] == 'S' || info[0] >= 'a') {
			x.hidden = append(x.hidden, name)
		}
		if strings.HasPrefix(info[2:], "160000 ") {
			x.links = append(x.links, name)
		}
		if filepath.Base(name) == ".gitattributes" {
			x.attributes = append(x.attributes, name)
		}
		if len(left) > 0 && (left[name] || isIn(left, name)) {
			x.leftOut = append(x.leftOut, name)
		}
		return nil
	}, "ls-files", "-z", "-s", "-v")
	return x, err
}

// isIn reports whether a folder of a set contains a file. The names of folders end with
// a slash.
func isIn(set map[string]bool, name string) bool {
	for i := range len(name) {
		if name[i] == '/' && set[name[:i+1]] {
			return true
		}
	}
	return false
}

// clearFlags clears the bits that hide changes. A sparse checkout has skip-worktree bits
// legitimately.
func (s *shadow) clearFlags(ctx context.Context, x index) error {
	if len(x.hidden) == 0 {
		return nil
	}
	names := joinNUL(x.hidden)
	err := s.do(ctx, names, "update-index", "-z", "--no-assume-unchanged", "--stdin")
	if err == nil && !isSparse(s.req.Repository.Settings) {
		err = s.do(ctx, names, "update-index", "-z", "--no-skip-worktree", "--stdin")
	}
	return err
}

// checkLeftOut handles the files that existed at the start and are not in the base: they
// are never included, and listed if they changed.
func (s *shadow) checkLeftOut(ctx context.Context, f *files, x index) error {
	if len(x.leftOut) > 0 {
		if err := s.do(ctx, joinNUL(x.leftOut), "update-index", "-z", "--skip-worktree", "--stdin"); err != nil {
			return err
		}
	}
	for _, l := range s.start.leftOut() {
		stamp, err := s.stamp(ctx, l.name)
		if err != nil {
			return err
		}
		if stamp != l.stamp {
			f.omit(l.name, "changed, and not in the state at the start, where it was left out")
		}
	}
	return nil
}

// changedFiles returns the files that differ from the index.
func (s *shadow) changedFiles(ctx context.Context) (deleted, changed []string, err error) {
	fields, err := s.list(ctx, nil, "diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=all")
	for pair := range slices.Chunk(fields, 2) {
		if len(pair) != 2 || pair[0] == "" {
			return nil, nil, errors.New("git diff-files: invalid output")
		}
		if pair[0][len(pair[0])-1] == 'D' {
			deleted = append(deleted, pair[1])
		} else {
			changed = append(changed, pair[1])
		}
	}
	return deleted, changed, err
}

// newFiles returns the files that are not in the base and not ignored, and the forced
// ones. It omits whole folders first. A patch cannot contain nested repositories.
func (s *shadow) newFiles(ctx context.Context, f *files, forced []string, most int64) ([]string, error) {
	listing := []string{"ls-files", "-z", "--others", "--exclude-standard"}
	out := &buffer{limit: maxOutput}
	unread, err := s.run(ctx, nil, out, append(listing, "--directory", "--no-empty-directory")...)
	if err != nil {
		return nil, err
	}
	var found, folders []string
	for _, name := range splitNUL(out.bytes) {
		isFolder := strings.HasSuffix(name, "/")
		switch {
		case most == 0:
			f.omit(name, "new, while the rest alone fits into a patch")
		case isFolder && diskUse(filepath.Join(s.top, name), 4*most) > 4*most:
			f.omit(name, fmt.Sprintf("larger than %d bytes", 4*most))
		case isFolder:
			folders = append(folders, name)
		default:
			found = append(found, name)
		}
	}
	if len(folders) > 0 {
		isFolder := setOf(folders)
		lines := &lineWriter{fn: func(name []byte) error {
			if isIn(isFolder, string(name)) {
				found = append(found, string(name))
			}
			return nil
		}}
		text, err := s.run(ctx, nil, lines, listing...)
		if err != nil {
			return nil, err
		}
		unread += text
	}
	if most > 0 {
		found = append(found, forced...)
	}
	for _, sub := range s.submodules() {
		// Without a file of its own in the index, git takes it for another repository.
		if i := slices.Index(found, sub.path+"/"); i >= 0 {
			within, err := s.othersIn(ctx, sub.path, "--exclude-standard")
			if err != nil {
				return nil, err
			}
			found = slices.Replace(found, i, i+1, within...)
		}
	}
	slices.Sort(found)
	isIgnored, isForced := setOf(splitNUL(s.start.Ignored)), setOf(forced)
	added := found[:0]
	for _, name := range slices.Compact(found) {
		switch {
		case strings.HasSuffix(name, "/"):
			f.omit(name, "a git repository of its own")
		// Files that git ignored at the start exist wherever the patch is applied. If a
		// folder had too many of them to list, all files in it count as existing.
		case isIgnored[name]:
			f.omit(name, "there at the start, where git ignored it")
		case !isForced[name] && isIn(isIgnored, name):
			f.omit(name, "in a folder that git ignored at the start, with too many files to tell which are new")
		default:
			added = append(added, name)
		}
	}
	for line := range strings.Lines(unread) {
		name, ok := strings.CutPrefix(line, "warning: could not open directory '")
		if end := strings.LastIndex(name, "': "); ok && end >= 0 {
			if o := (Omission{name[:end], "cannot be read"}); !slices.Contains(f.omitted, o) {
				f.omitted = append(f.omitted, o)
			}
		}
	}
	return added, nil
}

// diskUse returns the space that a folder takes, in bytes. It stops when that is more
// than most.
func diskUse(dir string, most int64) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error { // what cannot be read does not count
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if info, err := entry.Info(); err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512 //nolint:errcheck // its type on Linux
		}
		if sum > most {
			return fs.SkipAll
		}
		return nil
	})
	return sum
}

// fitting returns the names that are readable files of at most so many bytes, or links.
func (s *shadow) fitting(f *files, names []string, most int64) (fit []string) {
	for _, name := range names {
		path := filepath.Join(s.top, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil: // removed meanwhile
		case info.Mode()&fs.ModeSymlink != 0:
			fit = append(fit, name)
		case !info.Mode().IsRegular():
			f.omit(name, "neither a file nor a link")
		case info.Size() > most:
			f.omit(name, fmt.Sprintf("larger than %d bytes", most))
		case syscall.Access(path, 4) != nil:
			f.omit(name, "cannot be read")
		default:
			fit = append(fit, name)
		}
	}
	return fit
}

func (g git) forceRemove(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return g.do(ctx, joinNUL(names), "update-index", "-z", "--force-remove", "--stdin")
}

// add adds files to the index. One that git rejects makes the whole call fail, and for a
// rejected name git only prints a message. So it retries with fewer files at once until
// only the rejected one is left. A full disk is not a rejection.
func (s *shadow) add(ctx context.Context, f *files, names []string) error {
	for some := range slices.Chunk(names, 4096) {
		if err := s.addSome(ctx, f, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *shadow) addSome(ctx context.Context, f *files, names []string) error {
	message, err := s.run(ctx, reader(joinNUL(names)), nil, "update-index", "-z", "--add", "--remove", "--replace", "--stdin")
	switch {
	case err != nil && !isExit(err), isFull(message):
		return errors.Join(err, fullDisk(message))
	case err == nil && !strings.Contains("\n"+message, "\nIgnoring path"):
		return nil
	case len(names) > 1:
		for some := range slices.Chunk(names, (len(names)+7)/8) {
			if err := s.addSome(ctx, f, some); err != nil {
				return err
			}
		}
		return nil
	}
	reason := "no reason"
	for line := range strings.Lines(message) {
		// The loader of programs may have written lines of its own.
		if !strings.HasPrefix(line, "warning: ") && !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, "ERROR: ld.so: ") {
			reason = strings.TrimSpace(line)
			break
		}
	}
	if kind, rest, ok := strings.Cut(reason, ": "); ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" {
		reason = rest
	}
	f.omit(names[0], "git does not take it: "+reason)
	return nil
}

func fullDisk(message string) error {
	if !isFull(message) {
		return nil
	}
	return fmt.Errorf("%w: %s", errNoSpace, strings.TrimSpace(message))
}
