package files

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxSealed bounds how many folders may be unwritable for their owner: they get
// their mode at the end, and are remembered until then.
const maxSealed = 4096

// Unpack makes what a tar stream holds below dir, which is made when it is
// missing and found as any path is, through links too; below it none is
// followed. A file that is there is replaced, also one that is a link; a
// directory is not. It reads no further than the stream's end mark.
//
// The error wraps ErrRefused when the stream is to blame, or the first error of
// r. What was unpacked until then stays, each file whole.
func Unpack(r io.Reader, dir string, l Limits) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // as a shell's mkdir: the umask decides
		return fmt.Errorf("unpack: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	u := &unpacker{limits: l.withDefaults(), trail: trail{{Root: root}}, names: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	defer func() { err = errors.Join(err, u.trail.cut(0)) }()
	counted := &counter{Reader: r}
	stream := tar.NewReader(counted)
	for {
		counted.n = 0
		h, err := stream.Next()
		// Content is read to its end each time, so that what is read here is its
		// padding and the next block, the end mark's too.
		if err == io.EOF && counted.n < block { //nolint:errorlint // the stream's own, as it is
			err = io.ErrUnexpectedEOF
		}
		if err == io.EOF { //nolint:errorlint // likewise
			return u.seal()
		}
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
			err = fmt.Errorf("%w: not a tar stream: %w", ErrRefused, err)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if err := u.entry(h, stream); err != nil {
			return fmt.Errorf("unpack %.4096q: %w", h.Name, err)
		}
	}
}

// block is what a stream is made of, in bytes. Its end mark is one of zeros.
const block = 512

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

type unpacker struct {
	limits  Limits
	trail   trail
	entries int
	bytes   int64
	names   map[uint64]struct{} // hashes of the names so far: no name comes twice
	seed    maphash.Seed
	sealed  []sealed
	buf     []byte
}

// sealed is a folder that its owner cannot write to, once all is in it.
type sealed struct {
	path []string
	mode fs.FileMode
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil // a comment, as git archive writes it
	}
	path, err := split(h.Name)
	if err != nil {
		return err
	}
	if err := u.count(h, path); err != nil {
		return err
	}
	mode := h.FileInfo().Mode().Perm()
	if h.Typeflag == tar.TypeDir {
		return u.dir(path, mode)
	}
	if len(path) == 0 {
		return fmt.Errorf("%w: a file without a name", ErrRefused)
	}
	in, err := u.trail.to(path[:len(path)-1], makeDir)
	if err != nil {
		return err
	}
	name := path[len(path)-1]
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return replace(in, name, func(temporary string) error { return u.file(in, temporary, h, mode, content) })
	case tar.TypeSymlink:
		if !u.limits.OuterLinks && !inside(h.Linkname, len(path)-1) {
			return fmt.Errorf("%w: a symbolic link to %.4096q, which is or may be outside of the folder", ErrRefused, h.Linkname)
		}
		return replace(in, name, func(temporary string) error { return in.Symlink(h.Linkname, temporary) })
	case tar.TypeLink:
		return u.hardLink(h.Linkname, path)
	default:
		return fmt.Errorf("%w: neither file, directory nor link (type %q)", ErrRefused, h.Typeflag)
	}
}

func (u *unpacker) count(h *tar.Header, path []string) error {
	if u.entries++; u.entries > u.limits.Entries {
		return fmt.Errorf("%w: more than %d entries", ErrRefused, u.limits.Entries)
	}
	if h.Size < 0 || h.Size > u.limits.Bytes-u.bytes {
		return fmt.Errorf("%w: more than %d bytes", ErrRefused, u.limits.Bytes)
	}
	u.bytes += h.Size
	name := maphash.String(u.seed, strings.Join(path, "/"))
	if _, twice := u.names[name]; twice {
		return fmt.Errorf("%w: the name comes twice", ErrRefused)
	}
	u.names[name] = struct{}{}
	return nil
}

func makeDir(in folder, name string) error { return in.Mkdir(name, 0o777) }

// dir makes a directory, or gives one that is there its mode. Its owner can
// write to it until the end.
func (u *unpacker) dir(path []string, mode fs.FileMode) error {
	here, err := u.trail.to(path, makeDir)
	if err != nil {
		return err
	}
	const open = 0o700
	if mode&open != open {
		if len(u.sealed) == maxSealed {
			return fmt.Errorf("%w: more than %d folders that their owner cannot use", ErrRefused, maxSealed)
		}
		u.sealed = append(u.sealed, sealed{path, mode})
	}
	return here.Chmod(".", mode|open)
}

// seal gives folders their modes, inner ones first.
func (u *unpacker) seal() error {
	for i := len(u.sealed) - 1; i >= 0; i-- {
		s := u.sealed[i]
		here, err := u.trail.to(s.path, nil)
		if err == nil {
			err = here.Chmod(".", s.mode)
		}
		if err != nil {
			return fmt.Errorf("unpack %q: %w", strings.Join(s.path, "/"), err)
		}
	}
	return nil
}

// replace makes something under another name and then gives it its own, so that
// whoever looks sees the old, or the new, and nothing between.
func replace(in folder, name string, create func(temporary string) error) (err error) {
	temporary := ".mini-" + rand.Text()
	// Also after success: a rename between two names of one file does nothing.
	defer func() {
		if e := in.Remove(temporary); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if err := create(temporary); err != nil {
		return err
	}
	if there, err := in.Lstat(name); err == nil && there.IsDir() {
		return fmt.Errorf("%w: there is a directory of this name", ErrRefused)
	}
	return in.Rename(temporary, name)
}

func (u *unpacker) file(in folder, name string, h *tar.Header, mode fs.FileMode, content io.Reader) error {
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if u.buf == nil {
		u.buf = make([]byte, 64<<10)
	}
	_, err = io.CopyBuffer(onlyWriter{f}, onlyReader{content}, u.buf)
	if err == nil {
		err = f.Chmod(mode) // past the umask
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = in.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

type onlyReader struct{ io.Reader }

// hardLink gives a file of the tree one more name.
func (u *unpacker) hardLink(target string, path []string) error {
	from, err := split(target)
	if err != nil || len(from) == 0 {
		return fmt.Errorf("%w: a link to %.4096q", ErrRefused, target)
	}
	in, err := u.trail.to(from[:len(from)-1], nil)
	if err != nil {
		return fmt.Errorf("link to %.4096q: %w", target, err)
	}
	info, err := in.Lstat(from[len(from)-1])
	if err != nil {
		return fmt.Errorf("link to %.4096q: %w", target, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: a hard link to %s", ErrRefused, kind(info.Mode()))
	}
	in, err = u.trail.to(path[:len(path)-1], makeDir)
	if err != nil {
		return err
	}
	top := u.trail[0]
	return replace(in, path[len(path)-1], func(temporary string) error {
		to := append(append([]string{}, path[:len(path)-1]...), temporary)
		return top.Link(strings.Join(from, "/"), strings.Join(to, "/"))
	})
}

// inside reports whether a symbolic link in a folder that many levels down stays
// below the top, whatever else is a link. A step upwards is safe only at the
// beginning: after a name, which may be a link itself, it leads anywhere.
func inside(target string, depth int) bool {
	if target == "" || strings.HasPrefix(target, "/") {
		return false
	}
	named := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			if !isLocal(part) {
				return false
			}
			named = true
		case named || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}
