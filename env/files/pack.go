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

// batch is how many names of a directory are held at a time.
const batch = 256

// Pack writes path to w as a tar stream: a file or a symbolic link by its base
// name, a directory as its base name and all below it, in no particular order.
// The root of a file system is called ".". What ends or appears during the walk
// may be in the stream or not; a file that shrinks while it is read is an error.
// The error wraps fs.ErrNotExist when there is no such path, and the first error
// of w as it is.
func Pack(w io.Writer, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	above, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("pack %q: %w", path, err)
	}
	defer above.Close() //nolint:errcheck // nothing was written
	name := filepath.Base(path)
	if name == string(filepath.Separator) {
		name = "."
	}
	info, err := above.Lstat(name)
	if err != nil {
		return fmt.Errorf("pack %q: %w", path, err)
	}
	if !carried(info.Mode()) {
		return fmt.Errorf("pack %q: %w: it is %s", path, ErrRefused, kind(info.Mode()))
	}
	p := &packer{tar: tar.NewWriter(w)}
	if err := p.add(folder{Root: above}, name, name, 0); err != nil {
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

// add writes what name in a folder is; as is its name in the stream.
func (p *packer) add(in folder, name, as string, depth int) error {
	info, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !carried(info.Mode()) {
		return nil // it has just ended, or is nothing that could travel
	}
	if err != nil {
		return err
	}
	if p.entries++; p.entries > MaxEntries {
		return fmt.Errorf("%w: more than %d files", ErrRefused, MaxEntries)
	}
	switch m := info.Mode(); {
	case m.IsDir():
		return p.dir(in, name, as, depth)
	case m.IsRegular():
		return p.file(in, name, as, info)
	default:
		target, err := in.Readlink(name)
		if err != nil {
			return ended(err)
		}
		return p.tar.WriteHeader(header(as, tar.TypeSymlink, info, target, 0))
	}
}

func (p *packer) dir(in folder, name, as string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%w: more than %d folders inside each other", ErrRefused, MaxDepth)
	}
	here, err := in.into(name)
	if err != nil {
		return ended(err)
	}
	defer here.Close() //nolint:errcheck // nothing was written
	list, err := here.Open(".")
	if err != nil {
		return err
	}
	defer list.Close() //nolint:errcheck // nothing was written
	info, err := list.Stat()
	if err != nil {
		return err
	}
	if err := p.tar.WriteHeader(header(as+"/", tar.TypeDir, info, "", 0)); err != nil {
		return err
	}
	for {
		names, err := list.Readdirnames(batch)
		for _, name := range names {
			if err := p.add(here, name, as+"/"+name, depth+1); err != nil {
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

// file opens what is then told by its own facts: another file, or a link to one,
// may have taken the name meanwhile.
func (p *packer) file(in folder, name, as string, seen fs.FileInfo) error {
	f, err := in.OpenFile(name, forReading, 0)
	if err != nil {
		return ended(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, seen) {
		return nil // that one has ended
	}
	if p.bytes += info.Size(); p.bytes > MaxBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrRefused, int64(MaxBytes))
	}
	if err := p.tar.WriteHeader(header(as, tar.TypeReg, info, "", info.Size())); err != nil {
		return err
	}
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	// Both are wrapped: their own ways to copy would take other buffers.
	n, err := io.CopyBuffer(onlyWriter{p.tar}, io.LimitReader(f, info.Size()), p.buf)
	if err == nil && n < info.Size() {
		err = fmt.Errorf("%q shrank from %d to %d bytes while it was read", as, info.Size(), n)
	}
	return err
}

type onlyWriter struct{ io.Writer }

func header(name string, kind byte, info fs.FileInfo, target string, size int64) *tar.Header {
	return &tar.Header{
		Name: name, Typeflag: kind, Linkname: target, Size: size,
		Mode:    int64(info.Mode().Perm()),
		ModTime: info.ModTime().Truncate(time.Second), // it would be rounded, which may lie in the future
	}
}

// carried reports whether a type of file is part of a stream.
func carried(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() || m&fs.ModeSymlink != 0 }

// ended forgives the error about a name that is gone since it was seen.
func ended(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
