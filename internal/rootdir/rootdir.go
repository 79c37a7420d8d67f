// Package rootdir accesses the files in one untrusted folder: links in the folder may
// lead anywhere.
//
// A Dir is like an os.Root, but its methods take paths that start with the folder's
// path, as the rest of mini uses them. Access through a link that leads out of the
// folder fails with a *LinkError, and so do writes through any link.
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

// Modes of new files and folders, before the umask. Other users may read results.
const (
	folderMode = 0o755
	fileMode   = 0o644
)

// LinkError reports that a path leads out of the folder through a link or, for
// writes, that it contains any link.
type LinkError struct {
	Path   string // the link
	Dir    string // the folder of the Dir
	Inside bool   // the link does not lead out of the folder
}

func (e *LinkError) Error() string {
	if e.Inside {
		return fmt.Sprintf("%s is a link, and files in %s are not changed through links; replace it by a folder", e.Path, e.Dir)
	}
	return fmt.Sprintf("%s is a link that leads out of %s; replace it by a folder or file", e.Path, e.Dir)
}

// Dir is an open folder. Its methods are safe for concurrent use.
type Dir struct {
	path string
	root *os.Root
}

// Open opens an existing folder. path itself may contain links: the caller chose
// it.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, root: root}, nil
}

// Path returns the path given to Open.
func (d *Dir) Path() string { return d.path }

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }

// access calls work with the path relative to the root. It fails if the path is not in
// the folder. If work fails because of a link that leads out of the folder, the error is
// a *LinkError.
func (d *Dir) access(path string, work func(name string) error) error {
	name, err := filepath.Rel(d.path, path)
	if err != nil || !filepath.IsLocal(name) {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not in %s", d.path)}
	}
	err = work(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	if link := d.findLinkOut(name); link != "" {
		return &LinkError{Path: filepath.Join(d.path, link), Dir: d.path}
	}
	return err
}

// modify is like access for writes: no folder above path may be a link, since a write
// through it could overwrite other files in the same folder.
func (d *Dir) modify(path string, work func(name string) error) error {
	return d.access(path, func(name string) error {
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

// CheckWritable returns an error if links on the path forbid changing it. The file
// need not exist.
func (d *Dir) CheckWritable(path string) error {
	err := d.modify(path, func(name string) error {
		_, err := d.root.Lstat(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// findLinkOut returns the first link on a path that leads out of the folder; "" if
// there is none. The target need not exist.
func (d *Dir) findLinkOut(name string) string {
	parts := strings.Split(name, string(filepath.Separator))
	for i := range parts {
		prefix := filepath.Join(parts[:i+1]...)
		info, err := d.root.Lstat(prefix)
		if err != nil {
			return ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if _, err := d.root.Stat(prefix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return prefix
		}
	}
	return ""
}

// OpenFile is like os.OpenFile.
func (d *Dir) OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, err error) {
	with := d.access
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		with = d.modify
	}
	err = with(path, func(name string) error {
		f, err = d.root.OpenFile(name, flag, perm)
		return err
	})
	return f, err
}

// Open opens a regular file for reading. It returns an error, without blocking, for
// pipes and other files.
func (d *Dir) Open(path string) (*os.File, error) {
	f, err := d.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	return regular(path, f, err)
}

// OpenRegular opens an existing regular file in no particular folder. It returns an error,
// without blocking, for pipes and other files. flag is as in os.OpenFile; with
// syscall.O_NOFOLLOW the path must not be a link.
func OpenRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0) //nolint:gosec // G304: the caller's path
	return regular(path, f, err)
}

// regular returns the results of opening path, or an error if f is not a regular file.
func regular(path string, f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads a regular file of at most limit bytes.
func (d *Dir) ReadFile(path string, limit int64) ([]byte, error) {
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// Lstat is like os.Lstat.
func (d *Dir) Lstat(path string) (info fs.FileInfo, err error) {
	err = d.access(path, func(name string) error {
		info, err = d.root.Lstat(name)
		return err
	})
	return info, err
}

// ReadDir is like os.ReadDir.
func (d *Dir) ReadDir(path string) (entries []fs.DirEntry, err error) {
	err = d.access(path, func(name string) error {
		entries, err = fs.ReadDir(d.root.FS(), filepath.ToSlash(name))
		return err
	})
	return entries, err
}

// Glob returns the paths in the folder that match a pattern of path.Match. The pattern
// is relative to the folder and has slashes. Glob skips unreadable folders.
func (d *Dir) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(d.root.FS(), pattern)
	for i, name := range names {
		names[i] = filepath.Join(d.path, filepath.FromSlash(name))
	}
	return names, err
}

// MkdirAll creates a folder and its parents.
func (d *Dir) MkdirAll(path string) error {
	return d.modify(path, func(name string) error { return d.root.MkdirAll(name, folderMode) })
}

// MkdirTemp creates a folder with a random name that starts with prefix.
func (d *Dir) MkdirTemp(parent, prefix string) (path string, err error) {
	err = tryNames(filepath.Join(parent, prefix), func(candidate string) error {
		path = candidate
		return d.modify(candidate, func(name string) error { return d.root.Mkdir(name, folderMode) })
	})
	return path, err
}

// tryNames calls work with random paths that start with prefix, until work returns nil
// or another error than fs.ErrExist, but at most maxTries times.
func tryNames(prefix string, work func(path string) error) error {
	const maxTries = 1000
	var err error
	for range maxTries {
		err = work(prefix + strconv.FormatUint(rand.Uint64(), 36)) //nolint:gosec // G404: O_EXCL finds collisions
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return err
}

// Remove is like os.Remove.
func (d *Dir) Remove(path string) error { return d.modify(path, d.root.Remove) }

// RemoveAll is like os.RemoveAll. It removes a link, not its target.
func (d *Dir) RemoveAll(path string) error { return d.modify(path, d.root.RemoveAll) }

// Rename is like os.Rename.
func (d *Dir) Rename(from, to string) error {
	return d.modify(from, func(from string) error {
		return d.modify(to, func(to string) error { return d.root.Rename(from, to) })
	})
}

// WriteFile replaces a file atomically and creates its parents.
func (d *Dir) WriteFile(path string, data []byte) error {
	if err := d.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return d.Replace(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace replaces a file atomically by the data that write writes. On errors the old
// file remains. The new file gets the permissions of the old one. Replace does not
// follow a link, but replaces it.
func (d *Dir) Replace(path string, write func(io.Writer) error) (err error) {
	var f *os.File
	var temp string
	err = tryNames(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)), func(candidate string) error {
		temp = candidate
		f, err = d.OpenFile(candidate, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		return err
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = write(w)
	if info, statErr := d.Lstat(path); statErr == nil && info.Mode().IsRegular() && err == nil {
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
