// Package projectdocs reads the instructions for coding agents that users and projects
// write in files named AGENTS.md or CLAUDE.md.
package projectdocs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/internal/rootdir"
)

// names are the names of the files. Of each folder, the first one that exists is read.
var names = []string{"AGENTS.md", "CLAUDE.md"}

const (
	maxFile = 32 << 10 // limit of one file, in bytes
	maxAll  = 64 << 10 // limit of all files
	maxUp   = 64       // number of folders to search for the root of the repository
)

// File is a file of instructions.
type File struct {
	Path  string // relative to the working folder if the file is in the repository
	Text  string
	Bytes int  // size of Text
	IsCut bool // the file is longer than Text
}

// Read returns the files of the user's folder userDir, and of the folders from the root of
// the repository of dir down to dir; outside of a repository, of dir only. Empty folder
// names are skipped. The result has the files in this order: what is nearest to the work
// comes last. Files that cannot be read are reported in the error; the others are returned
// all the same.
func Read(userDir, dir string) ([]File, error) {
	var (
		files []File
		errs  []error
	)
	add := func(found []File, err error, nameOf func(path string) string) {
		errs = append(errs, err)
		for _, f := range found {
			f.Path = nameOf(f.Path)
			files = append(files, f)
		}
	}
	if userDir != "" {
		found, err := readFolder(userDir, openUserFile)
		add(found, err, func(path string) string { return path })
	}
	if dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return files, err
		}
		root, folders := foldersOf(dir)
		found, err := readRoot(root, folders)
		add(found, err, func(path string) string {
			if rel, err := filepath.Rel(dir, path); err == nil {
				return rel
			}
			return path
		})
	}
	return limit(files), errors.Join(errs...)
}

// foldersOf returns the root of the repository that dir is in, and the folders from the root
// to dir, relative to the root. Outside of a repository, the root is dir.
func foldersOf(dir string) (root string, folders []string) {
	folders = []string{"."}
	for root = dir; len(folders) <= maxUp; root = filepath.Dir(root) {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			slices.Reverse(folders)
			for i, f := range folders {
				if folders[i], err = filepath.Rel(root, filepath.Join(dir, f)); err != nil {
					return dir, []string{"."}
				}
			}
			return root, folders
		}
		if root == filepath.Dir(root) {
			break
		}
		folders = append(folders, filepath.Join(folders[len(folders)-1], ".."))
	}
	return dir, []string{"."}
}

// readRoot reads the files of folders below root. Symbolic links do not lead out of root.
func readRoot(root string, folders []string) (files []File, err error) {
	d, err := rootdir.Open(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var errs []error
	for _, folder := range folders {
		found, err := readFolder(filepath.Join(root, folder), func(path string) (*os.File, error) { return openProjectFile(d, path) })
		files, errs = append(files, found...), append(errs, err)
	}
	return files, errors.Join(errs...)
}

// readFolder reads the first file of a folder that can be read.
func readFolder(folder string, open func(path string) (*os.File, error)) ([]File, error) {
	var errs []error
	for _, name := range names {
		path := filepath.Join(folder, name)
		text, isCut, err := readFile(path, open)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		case text != "":
			return []File{{Path: path, Text: text, Bytes: len(text), IsCut: isCut}}, errors.Join(errs...)
		}
	}
	return nil, errors.Join(errs...)
}

// errLink means that a symbolic link has another kind of file as its target. A repository
// could make mini send a file with keys to the model, such as .env or .git/config.
var errLink = errors.New("a symbolic link to a file of another name is not followed")

// openProjectFile opens a file of a project, whose author may be another person than the user.
func openProjectFile(d *rootdir.Dir, path string) (*os.File, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, filepath.Base(target)) {
		return nil, errLink
	}
	return d.Open(path)
}

// openUserFile opens a file of the user. It may be a symbolic link to any file.
func openUserFile(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.Open(path) //nolint:gosec // the user's own
}

// readFile reads one file, up to maxFile. Tabs stay, because they are part of examples.
func readFile(path string, open func(path string) (*os.File, error)) (text string, isCut bool, err error) {
	f, err := open(path)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", false, err
	}
	text, isCut = cut(string(data), maxFile)
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	return strings.TrimSpace(text), isCut, nil
}

// cut returns text up to limit bytes, cut after a line if it has one.
func cut(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return text, false
	}
	text = text[:limit]
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		return text[:i+1], true
	}
	for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text[:max(0, len(text)-1)], true
}

// limit cuts the files to maxAll together. The last files are the nearest to the work, so
// the first ones are cut.
func limit(files []File) []File {
	left := maxAll
	for i, f := range slices.Backward(files) {
		text, isCut := cut(f.Text, left)
		files[i].Text, files[i].Bytes, files[i].IsCut = text, len(text), f.IsCut || isCut
		left -= len(text)
	}
	return slices.DeleteFunc(files, func(f File) bool { return f.Bytes == 0 })
}

// Prompt returns the files as a text for the model; "" if there are none.
func Prompt(files []File) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("The user and the project have these instructions for you. Of two that contradict\neach other, the later one counts; the task counts more than both.\n")
	for _, f := range files {
		fmt.Fprintf(&b, "\n<instructions file=%q>\n%s\n", f.Path, f.Text)
		if f.IsCut {
			b.WriteString("(The file goes on; read it if you need the rest.)\n")
		}
		b.WriteString("</instructions>\n")
	}
	return b.String()
}
