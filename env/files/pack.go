package files

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// readdirBatch is the number of names read from a directory at a time.
const readdirBatch = 256

// Pack writes path to w as a tar stream: a file or a symbolic link under its base name,
// a directory under its base name with its contents, in no particular order. The root
// of a file system is called ".". Files created, deleted or replaced while Pack runs may
// be missing; a file that shrinks while it is read is an error. The error wraps
// fs.ErrNotExist if path does not exist, ErrRefused if path is of another type or the
// tree exceeds a limit, or the first error of w.
func Pack(w io.Writer, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("pack %q: %w", path, err)
	}
	defer parent.Close() //nolint:errcheck // nothing was written
	name := filepath.Base(path)
	if name == string(filepath.Separator) {
		name = "."
	}
	info, err := parent.Lstat(name)
	if err != nil {
		return fmt.Errorf("pack %q: %w", path, err)
	}
	if !isPacked(info.Mode()) {
		return fmt.Errorf("pack %q: %w: is %s", path, ErrRefused, kind(info.Mode()))
	}
	p := &packer{tar: tar.NewWriter(w)}
	if err := p.add(folder{Root: parent}, name, name, 0); err != nil {
		return fmt.Errorf("pack %q: %w", path, err)
	}
	if err := p.tar.Close(); err != nil {
		return fmt.Errorf("pack %q: %w", path, err)
	}
	return nil
}

type packer struct {
	tar     *tar.Writer
	entries int
	bytes   int64
	buf     []byte
}

// add writes the file called name in parent; streamName is its name in the stream.
func (p *packer) add(parent folder, name, streamName string, depth int) error {
	info, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !isPacked(info.Mode()) {
		return nil // it was just deleted, or its type is not supported
	}
	if err != nil {
		return err
	}
	if p.entries++; p.entries > MaxEntries {
		return fmt.Errorf("%w: more than %d files", ErrRefused, MaxEntries)
	}
	switch m := info.Mode(); {
	case m.IsDir():
		return p.dir(parent, name, streamName, depth)
	case m.IsRegular():
		return p.file(parent, name, streamName, info)
	default:
		target, err := parent.Readlink(name)
		if err != nil {
			return ignoreMissing(err)
		}
		return p.tar.WriteHeader(header(streamName, tar.TypeSymlink, info, target, 0))
	}
}

func (p *packer) dir(parent folder, name, streamName string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%w: directories nested deeper than %d", ErrRefused, MaxDepth)
	}
	sub, err := parent.openDir(name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer sub.Close() //nolint:errcheck // nothing was written
	list, err := sub.Open(".")
	if err != nil {
		return err
	}
	defer list.Close() //nolint:errcheck // nothing was written
	info, err := list.Stat()
	if err != nil {
		return err
	}
	if err := p.tar.WriteHeader(header(streamName+"/", tar.TypeDir, info, "", 0)); err != nil {
		return err
	}
	for {
		names, err := list.Readdirnames(readdirBatch)
		for _, name := range names {
			if err := p.add(sub, name, streamName+"/"+name, depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// file writes a regular file. It verifies the opened file, because another file or a
// link may have replaced it since Lstat.
func (p *packer) file(parent folder, name, streamName string, want fs.FileInfo) error {
	f, err := parent.OpenFile(name, readFlags, 0)
	if err != nil {
		return ignoreMissing(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, want) {
		return nil // the file was replaced
	}
	if p.bytes += info.Size(); p.bytes > MaxBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrRefused, int64(MaxBytes))
	}
	if err := p.tar.WriteHeader(header(streamName, tar.TypeReg, info, "", info.Size())); err != nil {
		return err
	}
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	// The wrappers hide ReadFrom and WriteTo, so that CopyBuffer uses the buffer.
	n, err := io.CopyBuffer(onlyWriter{p.tar}, io.LimitReader(f, info.Size()), p.buf)
	if err == nil && n < info.Size() {
		err = fmt.Errorf("%q shrank from %d to %d bytes while it was read", streamName, info.Size(), n)
	}
	return err
}

type onlyWriter struct{ io.Writer }

func header(name string, typeflag byte, info fs.FileInfo, target string, size int64) *tar.Header {
	return &tar.Header{
		Name: name, Typeflag: typeflag, Linkname: target, Size: size,
		Mode:    int64(info.Mode().Perm()),
		ModTime: info.ModTime().Truncate(time.Second), // rounding could give a time in the future
	}
}

// isPacked reports whether files of a type are written to a stream.
func isPacked(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() || m&fs.ModeSymlink != 0 }

// ignoreMissing returns nil if err says that a file no longer exists, else err.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
