package undo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Diff is what changed in a working tree.
type Diff struct {
	// Patch is for people: renames are found, and of binary files it says only
	// that they differ. It is as foreign as the files are.
	Patch []byte
	// Cut says that the patch was longer than maxPatch.
	Cut bool
	// Files are all that changed.
	Files []File
	// Tree names the state that was looked at; Restore takes it.
	Tree string
	// Moved says that HEAD is another commit than at the start: commits were
	// made, or another branch checked out.
	Moved bool
	// Was and Is are the commits; empty where there is none. Commits counts
	// those that Is has and Was has not.
	Was, Is string
	Commits int
	// Staged says that the index is not what it was.
	Staged bool
}

// File is one that changed.
type File struct {
	Path, From string // From is what it was renamed from, if it was
	Status     Status
	// Added and Deleted are lines; -1 in binary files.
	Added, Deleted int
}

// Status is what became of a file.
type Status string

// What becomes of files.
const (
	Added    Status = "A"
	Deleted  Status = "D"
	Modified Status = "M"
	Renamed  Status = "R"
	Retyped  Status = "T" // a file became a link, or a link a file
)

// maxPatch bounds what is held for a screen, in bytes.
const maxPatch = 4 << 20

// Diff is what changed since the snapshot was taken. It may be asked for while
// commands run.
func (s *Snapshot) Diff(ctx context.Context) (Diff, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.diff(ctx)
	if err != nil {
		return Diff{}, fmt.Errorf("take diff: %w", err)
	}
	return d, nil
}

func (s *Snapshot) diff(ctx context.Context) (Diff, error) {
	tree, err := s.look(ctx)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{Tree: tree}
	if err := s.state(ctx, &d); err != nil {
		return Diff{}, err
	}
	if tree == s.noted.Tree {
		return d, nil
	}
	out, err := s.compare(ctx, 0, s.noted.Tree, tree, "--raw", "--numstat", "-z", "-M")
	if err != nil {
		return Diff{}, err
	}
	if d.Files, err = parseFiles(out); err != nil {
		return Diff{}, err
	}
	d.Patch, err = s.compare(ctx, maxPatch, s.noted.Tree, tree, "-p", "-M")
	d.Cut = errors.Is(err, errCut)
	if err != nil && !d.Cut {
		return Diff{}, err
	}
	return d, nil
}

// look takes the files as they are now. Commands may change them meanwhile, so
// that it tries again.
func (s *Snapshot) look(ctx context.Context) (tree string, err error) {
	dir := filepath.Join(s.store, "git")
	for range 3 {
		if err := copyFile(filepath.Join(dir, startIndex), filepath.Join(dir, nowIndex)); err != nil {
			return "", err
		}
		tree, err = s.write(ctx, nowIndex, false)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return tree, err
}

// compare is diff-tree on the store, with no settings and no programs.
func (s *Snapshot) compare(ctx context.Context, most int, from, to string, options ...string) ([]byte, error) {
	args := append([]string{"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, options...)
	return run(ctx, s.git, call{dir: s.noted.Top, env: s.shadowEnv(nowIndex), most: most}, append(args, from, to)...)
}

// state finds out what became of the repository itself. Where it is gone, its
// HEAD is.
func (s *Snapshot) state(ctx context.Context, d *Diff) error {
	r := &repository{git: s.git, top: s.noted.Top, hidden: s.hidden}
	d.Was = s.noted.Head
	if dir, err := r.ask(ctx, "rev-parse", "--absolute-git-dir"); err == nil && strings.TrimSuffix(string(dir), "\n") == s.noted.GitDir {
		if d.Is, err = r.headNow(ctx); err != nil {
			return err
		}
		sum, err := r.staged(ctx)
		d.Staged = err == nil && sum != s.noted.Index
	}
	if d.Moved = d.Is != d.Was; d.Moved && d.Is != "" {
		args := []string{"rev-list", "--count", d.Is}
		if d.Was != "" {
			args = append(args, "^"+d.Was)
		}
		out, err := r.ask(ctx, args...)
		if err == nil {
			d.Commits, _ = strconv.Atoi(strings.TrimSpace(string(out))) // a number of git's
		}
	}
	return ctx.Err()
}

// parseFiles reads --raw --numstat -z: first what became of every file, then
// how many lines.
func parseFiles(out []byte) ([]File, error) {
	var files []File
	fields := split(out)
	at := 0
	next := func() string {
		if at >= len(fields) {
			return ""
		}
		at++
		return fields[at-1]
	}
	for at < len(fields) && strings.HasPrefix(fields[at], ":") {
		head := strings.Fields(next())
		if len(head) != 5 {
			return nil, errors.New("git diff-tree: an answer that cannot be read")
		}
		f := File{Status: Status(head[4][:1]), Path: next()}
		if f.Status == Renamed {
			f.From, f.Path = f.Path, next()
		}
		files = append(files, f)
	}
	for i := range files {
		f := strings.SplitN(next(), "\t", 3)
		if len(f) != 3 {
			return nil, errors.New("git diff-tree: an answer that cannot be read")
		}
		if f[2] == "" { // of a rename, whose names follow
			next()
			next()
		}
		files[i].Added, files[i].Deleted = lines(f[0]), lines(f[1])
	}
	return files, nil
}

func lines(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// Summary is, say, "3 files changed, 12 insertions, 1 deletion".
func (d Diff) Summary() string {
	if len(d.Files) == 0 {
		return "no changes"
	}
	added, deleted := 0, 0
	for _, f := range d.Files {
		added += max(f.Added, 0)
		deleted += max(f.Deleted, 0)
	}
	text := count(len(d.Files), "file") + " changed"
	if added > 0 {
		text += ", " + count(added, "insertion")
	}
	if deleted > 0 {
		text += ", " + count(deleted, "deletion")
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
