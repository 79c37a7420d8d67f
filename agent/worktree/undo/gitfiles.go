package undo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/minibench/mini/internal/lazyregexp"
)

// GitFiles records what git on this machine reads besides the files of a working tree: every .git
// and bare repository below a folder, the .git of the repository around it, the files of their git
// directories, and the files that its settings name: included ones, hooks and other programs. They
// can name programs: hooks, filters, a file system monitor, a common directory or a repository
// elsewhere. Snapshots need not have them.
type GitFiles struct {
	folder    string
	own       string            // is not read
	dirs      []string          // the git directories at the start
	named     []string          // files, and folders of hooks, that the settings name at the start
	truncated bool              // the folder had more than maxEntries at the start
	hashes    map[string]string // of each .git, of each file of a git directory and of each named file
}

// maxEntries is the number of entries of a folder or git directory that are read. Tests change it.
var maxEntries = 200_000

// Limits on the bytes of a file that are read, for executable files and others.
const (
	maxProgram = 64 << 20
	maxGitFile = 1 << 20
)

// maxGitFiles is the maximum length of the list that Changed returns.
const maxGitFiles = 20

// gitState matches the names in a git directory that git changes in ordinary work and that name
// no programs.
var gitState = lazyregexp.New(`^(?:[A-Z_]*(?:HEAD|MSG)|AUTO_MERGE|MERGE_(?:RR|MODE)|BISECT_[A-Z]+|objects|refs|logs|lfs|index|packed-refs|shallow|description|gc\.log|.*\.lock|.*\.sample)$`)

// ReadGitFiles reads the files of git for a folder, which need not be in a repository. It leaves
// out own, the folder where mini keeps its snapshots. hidden is as for TakeSnapshot.
func ReadGitFiles(ctx context.Context, folder, own string, hidden ...string) *GitFiles {
	g := &GitFiles{folder: realPath(folder), own: realPath(own)}
	g.hashes, g.truncated = g.read(func(name string) {
		dir := gitDir(name)
		g.dirs = append(g.dirs, dir)
		g.named = append(g.named, filepath.Join(dir, "hooks")) // it may be a link
		if common, _, err := readSmall(filepath.Join(dir, "commondir")); err == nil {
			g.dirs = append(g.dirs, resolve(dir, common))
		}
	})
	slices.Sort(g.dirs)
	g.dirs = slices.Compact(g.dirs)
	g.findNamed(ctx, hidden)
	g.readDirs(g.hashes)
	return g
}

// realPath returns an absolute path without links, as far as it exists.
func realPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path
}

// Changed returns the sorted names of the files that differ from those at the start, or the first
// of them, relative to the folder if they are below it. They are untrusted.
func (g *GitFiles) Changed() []string {
	now, truncated := g.read(func(string) {})
	g.readDirs(now)
	var names []string
	if truncated && !g.truncated { // a program may be behind the others
		names = append(names, fmt.Sprintf(". (it has more than %d files, and not all were read)", maxEntries))
	}
	for name, hash := range g.hashes {
		if now[name] != hash {
			names = append(names, name)
		}
	}
	for name := range now {
		if _, known := g.hashes[name]; !known {
			names = append(names, name)
		}
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, g.folder+"/")
	}
	slices.Sort(names)
	return names[:min(len(names), maxGitFiles)]
}

// findNamed finds the files that the settings of the repository around the folder name.
func (g *GitFiles) findNamed(ctx context.Context, hidden []string) {
	git, err := findGit()
	if err != nil {
		return
	}
	r, err := findRepository(ctx, git, g.folder, hidden)
	if err != nil {
		return
	}
	out, _ := r.run(ctx, "config", "-z", "--show-origin", "--list") // without it only other files are known
	for fields := range slices.Chunk(splitNul(out), 2) {
		key, value, _ := strings.Cut(fields[len(fields)-1], "\n")
		switch {
		case key == "core.hookspath":
			g.named = append(g.named, resolve(r.top, value))
		case strings.HasPrefix(key, "include") && strings.HasSuffix(key, ".path"):
			settings := resolve(r.top, strings.TrimPrefix(fields[0], "file:"))
			g.named = append(g.named, resolve(filepath.Dir(settings), value))
		}
		for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n!\"';", r) }) {
			file := resolve(r.top, word)
			if !strings.Contains(word, "/") || !strings.HasPrefix(file, r.top+"/") { // a program of this machine
				continue
			}
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				g.named = append(g.named, file)
			}
		}
	}
}

// read returns the hashes of every .git and bare repository, and calls found for it. truncated
// reports whether there are more entries than it reads.
func (g *GitFiles) read(found func(name string)) (hashes map[string]string, truncated bool) {
	hashes = map[string]string{}
	add := func(name string) bool {
		hash := hashFile(name)
		if hash != "" {
			hashes[name] = hash
			found(name)
		}
		return hash != ""
	}
	truncated = walk(g.folder, func(file string, d fs.DirEntry) error {
		if file == g.own && d.IsDir() {
			return fs.SkipDir
		}
		if d.Name() == "HEAD" && isFolder(filepath.Dir(file), "objects") && isFolder(filepath.Dir(file), "refs") {
			add(filepath.Dir(file))
		}
		if d.Name() != ".git" {
			return nil
		}
		add(file)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	dir := filepath.Dir(g.folder)
	for !add(filepath.Join(dir, ".git")) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return hashes, truncated
}

func isFolder(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.IsDir()
}

// readDirs adds the hashes of the files in the git directories at the start, and of named files.
func (g *GitFiles) readDirs(hashes map[string]string) {
	for _, dir := range g.dirs {
		walk(dir, func(file string, d fs.DirEntry) error {
			switch {
			case file == dir:
			case gitState.MatchString(d.Name()) && d.IsDir():
				if _, err := os.Lstat(filepath.Join(file, "config")); err != nil { // it is not that of a submodule
					return fs.SkipDir
				}
			case !gitState.MatchString(d.Name()) && !d.IsDir():
				hashes[file] = hashFile(file)
			}
			return nil
		})
	}
	for _, name := range g.named {
		if hash := hashFile(name); hash != "" {
			hashes[name] = hash
		}
		entries, _ := os.ReadDir(name) // of a file there are none
		for _, d := range entries[:min(len(entries), maxEntries)] {
			if file := filepath.Join(name, d.Name()); !d.IsDir() && !gitState.MatchString(d.Name()) {
				hashes[file] = hashFile(file)
			}
		}
	}
}

// walk calls visit for the entries of a folder, without those that cannot be read. It reports
// whether there are more than maxEntries.
func walk(folder string, visit func(file string, d fs.DirEntry) error) (truncated bool) {
	entries := 0
	_ = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error { // it has only errors of visit
		if entries++; entries > maxEntries {
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // git cannot read it either
		}
		return visit(file, d)
	})
	return entries > maxEntries
}

// gitDir returns the git directory of a .git.
func gitDir(name string) string {
	info, err := os.Lstat(name)
	if err != nil || info.IsDir() {
		return name
	}
	if target, err := os.Readlink(name); err == nil {
		return resolve(filepath.Dir(name), target)
	}
	text, _, _ := readSmall(name) // the folder itself if it cannot be read
	return resolve(filepath.Dir(name), strings.TrimPrefix(text, "gitdir: "))
}

// resolve returns the path that a file or link of git in a folder has.
func resolve(folder, name string) string {
	if name = strings.TrimRight(name, "\r\n"); !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	return filepath.Clean(name)
}

// hashFile describes a file by its mode, its target if it is a link, and its contents. It returns
// "" if there is no such file.
func hashFile(name string) string {
	info, err := os.Lstat(name)
	if err != nil {
		return ""
	}
	target, _ := os.Readlink(name)   // empty unless it is a link
	text, size, _ := readSmall(name) // empty if it is a folder or a pipe, for example
	return fmt.Sprintf("%s %s %d %x", info.Mode().String(), target, size, sha256.Sum256([]byte(text)))
}

// readSmall returns the beginning of a regular file, or of the one that a link leads to, and its
// size.
func readSmall(name string) (text string, size int64, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() { // opening a device can have effects
		return "", 0, errors.Join(err, errors.ErrUnsupported)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // only hashes of it are kept
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }() // only read
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", 0, errors.Join(err, errors.ErrUnsupported)
	}
	limit := int64(maxGitFile)
	if info.Mode().Perm()&0o111 != 0 {
		limit = maxProgram
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return string(data), info.Size(), err
}
