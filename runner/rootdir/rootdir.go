// Package rootdir reads and changes files below one folder, and nowhere else.
//
// The folder may come from a stranger: a link in it can lead anywhere. A Dir is
// an os.Root whose methods take the paths that the rest of mini works with, those
// that begin with the folder's own. A path with a link that leads out of the
// folder is refused with a *LinkError; so is one through any link where something
// is to be changed.
//
//	dir, err := rootdir.Open("runs/first")
//	err = dir.WriteFile("runs/first/verdicts/mini/m/a.json", data)
package rootdir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Modes of what mini makes, before the umask: results are for sharing.
const (
	folderMode = 0o755
	fileMode   = 0o644
)

// LinkError says that a path below a folder leads out of it through a link, or
// through a link to another place where something was to be changed.
type LinkError struct {
	Path   string // of the link
	Dir    string // the folder
	Inside bool   // it does not lead out
}

func (e *LinkError) Error() string {
	if e.Inside {
		return fmt.Sprintf("%s is a link, and nothing in %s is changed through links; replace it by a folder of its own", e.Path, e.Dir)
	}
	return fmt.Sprintf("%s is a link that leads out of %s; replace it by a folder or file of its own", e.Path, e.Dir)
}

// Dir is one folder. Its methods are safe for concurrent use.
type Dir struct {
	path string
	root *os.Root
}

// Open opens a folder that is there. The path itself may be, or lead through, a
// link: the caller has chosen it.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, root: root}, nil
}

// Path is the path that the folder was opened by.
func (d *Dir) Path() string { return d.path }

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }

// in does work with a path as os.Root takes it.
func (d *Dir) in(path string, work func(name string) error) error {
	name, err := filepath.Rel(d.path, path)
	if err != nil || !filepath.IsLocal(name) {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is not below %s", d.path)}
	}
	err = work(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	if link := d.link(name); link != "" {
		return &LinkError{Path: filepath.Join(d.path, link), Dir: d.path}
	}
	return err
}

// change does work that changes what is at a path. No folder above it may be a
// link: it could lead to other files of the same folder, and these would be lost.
func (d *Dir) change(path string, work func(name string) error) error {
	return d.in(path, func(name string) error {
		for i, c := range name {
			if c != filepath.Separator {
				continue
			}
			if info, err := d.root.Lstat(name[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return &LinkError{Path: filepath.Join(d.path, name[:i]), Dir: d.path, Inside: true}
			}
		}
		return work(name)
	})
}

// CheckChange says whether the links of a path let what is there be changed. It
// need not be there.
func (d *Dir) CheckChange(path string) error {
	err := d.change(path, func(name string) error {
		_, err := d.root.Lstat(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// link finds the first link of a path that leads out of the folder; "" where
// there is none. What it leads to may be missing: it is refused all the same.
func (d *Dir) link(name string) string {
	parts := strings.Split(name, string(filepath.Separator))
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		info, err := d.root.Lstat(at)
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if _, err := d.root.Stat(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return at
		}
	}
	return ""
}

// OpenFile is os.OpenFile, for a file that is read or written.
func (d *Dir) OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, err error) {
	do := d.in
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		do = d.change
	}
	err = do(path, func(name string) error {
		f, err = d.root.OpenFile(name, flag, perm)
		return err
	})
	return f, err
}

// Open opens a plain file for reading. What is none, as a pipe, is an error and
// is not waited for.
func (d *Dir) Open(path string) (*os.File, error) {
	f, err := d.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a plain file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads a plain file of at most so many bytes.
func (d *Dir) ReadFile(path string, most int64) ([]byte, error) {
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// Lstat is os.Lstat.
func (d *Dir) Lstat(path string) (info fs.FileInfo, err error) {
	err = d.in(path, func(name string) error {
		info, err = d.root.Lstat(name)
		return err
	})
	return info, err
}

// ReadDir is os.ReadDir.
func (d *Dir) ReadDir(path string) (entries []fs.DirEntry, err error) {
	err = d.in(path, func(name string) error {
		entries, err = fs.ReadDir(d.root.FS(), filepath.ToSlash(name))
		return err
	})
	return entries, err
}

// Glob finds the paths below the folder that match a pattern of path.Match,
// which is relative to it and has slashes. What cannot be read is left out.
func (d *Dir) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(d.root.FS(), pattern)
	for i, name := range names {
		names[i] = filepath.Join(d.path, filepath.FromSlash(name))
	}
	return names, err
}

// MkdirAll makes a folder, and those above it.
func (d *Dir) MkdirAll(path string) error {
	return d.change(path, func(name string) error { return d.root.MkdirAll(name, folderMode) })
}

// MkdirTemp makes a folder with a new name that begins with prefix.
func (d *Dir) MkdirTemp(parent, prefix string) (path string, err error) {
	err = unused(filepath.Join(parent, prefix), func(at string) error {
		path = at
		return d.change(at, func(name string) error { return d.root.Mkdir(name, folderMode) })
	})
	return path, err
}

// unused calls work with names that begin alike until one is not taken.
func unused(prefix string, work func(path string) error) error {
	const most = 1000
	var err error
	for range most {
		err = work(prefix + strconv.FormatUint(rand.Uint64(), 36)) //nolint:gosec // G404: O_EXCL finds collisions
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return err
}

// Remove is os.Remove.
func (d *Dir) Remove(path string) error { return d.change(path, d.root.Remove) }

// RemoveAll is os.RemoveAll. Of a link it removes the link.
func (d *Dir) RemoveAll(path string) error { return d.change(path, d.root.RemoveAll) }

// Rename is os.Rename.
func (d *Dir) Rename(from, to string) error {
	return d.change(from, func(from string) error {
		return d.change(to, func(to string) error { return d.root.Rename(from, to) })
	})
}

// WriteFile replaces a file in one piece, and makes the folders above it.
func (d *Dir) WriteFile(path string, data []byte) error {
	if err := d.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return d.Replace(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace replaces a file by what write gives, or leaves it as it was. Readers
// see the old file or the new one, never a part. The new one has the permissions
// of the old. A link in its place is replaced, not followed.
func (d *Dir) Replace(path string, write func(io.Writer) error) (err error) {
	var f *os.File
	var temp string
	err = unused(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)), func(at string) error {
		temp = at
		f, err = d.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		return err
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = write(w)
	if info, failed := d.Lstat(path); failed == nil && info.Mode().IsRegular() && err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	return nil
}
