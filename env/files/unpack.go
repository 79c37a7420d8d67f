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

// maxRestricted is the maximum number of directories that their owner cannot write to.
// Their modes are remembered and set at the end.
const maxRestricted = 4096

// Unpack extracts a tar stream into dir. It creates dir if it does not exist; symbolic
// links in its path are followed, but none below it. Existing files and links are
// replaced, existing directories are kept. Unpack does not read beyond the stream's
// end mark.
//
// The error wraps ErrRefused if the stream is invalid, or the first error of r. Files
// unpacked before the error remain, each of them complete.
func Unpack(r io.Reader, dir string, l Limits) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // as a shell's mkdir: the umask decides
		return fmt.Errorf("unpack: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	u := &unpacker{limits: l.withDefaults(), path: openPath{{Root: root}}, names: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	defer func() { err = errors.Join(err, u.path.truncate(0)) }()
	counted := &countingReader{Reader: r}
	stream := tar.NewReader(counted)
	for {
		counted.n = 0
		h, err := stream.Next()
		// Next first skips the rest of the previous file's content. It has been read
		// completely, so the bytes counted here are its padding and the next block.
		if err == io.EOF && counted.n < block { //nolint:errorlint // the stream's io.EOF, unwrapped
			err = io.ErrUnexpectedEOF
		}
		if err == io.EOF { //nolint:errorlint // likewise
			return u.restrict()
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

// block is the block size of a stream, in bytes. The end mark is a block of zeros.
const block = 512

type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

type unpacker struct {
	limits     Limits
	path       openPath
	entries    int
	bytes      int64
	names      map[uint64]struct{} // hashes of the names so far, to refuse duplicates
	seed       maphash.Seed
	restricted []restrictedDir
	buf        []byte
}

// restrictedDir is a directory that its owner cannot write to. It gets its mode at the
// end.
type restrictedDir struct {
	path []string
	mode fs.FileMode
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil // a comment, as written by git archive
	}
	path, err := splitName(h.Name)
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
		return fmt.Errorf("%w: file without a name", ErrRefused)
	}
	in, err := u.path.open(path[:len(path)-1], makeDir)
	if err != nil {
		return err
	}
	name := path[len(path)-1]
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return replace(in, name, func(tempName string) error { return u.file(in, tempName, h, mode, content) })
	case tar.TypeSymlink:
		if !u.limits.AllowOutsideLinks && !staysInside(h.Linkname, len(path)-1) {
			return fmt.Errorf("%w: symbolic link to %.4096q, which is or may be outside the directory", ErrRefused, h.Linkname)
		}
		return replace(in, name, func(tempName string) error { return in.Symlink(h.Linkname, tempName) })
	case tar.TypeLink:
		return u.hardLink(h.Linkname, path)
	default:
		return fmt.Errorf("%w: not a file, directory or link (type %q)", ErrRefused, h.Typeflag)
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
	if _, exists := u.names[name]; exists {
		return fmt.Errorf("%w: duplicate name", ErrRefused)
	}
	u.names[name] = struct{}{}
	return nil
}

func makeDir(in folder, name string) error { return in.Mkdir(name, 0o777) }

// dir creates a directory, or sets the mode of an existing one. The owner can write to
// it until the end.
func (u *unpacker) dir(path []string, mode fs.FileMode) error {
	here, err := u.path.open(path, makeDir)
	if err != nil {
		return err
	}
	const ownerMode = 0o700
	if mode&ownerMode != ownerMode {
		if len(u.restricted) == maxRestricted {
			return fmt.Errorf("%w: more than %d directories that their owner cannot write to", ErrRefused, maxRestricted)
		}
		u.restricted = append(u.restricted, restrictedDir{path, mode})
	}
	return here.Chmod(".", mode|ownerMode)
}

// restrict sets the modes of the restricted directories, inner ones first.
func (u *unpacker) restrict() error {
	for i := len(u.restricted) - 1; i >= 0; i-- {
		s := u.restricted[i]
		here, err := u.path.open(s.path, nil)
		if err == nil {
			err = here.Chmod(".", s.mode)
		}
		if err != nil {
			return fmt.Errorf("unpack %q: %w", strings.Join(s.path, "/"), err)
		}
	}
	return nil
}

// replace creates a file under a tempName name and renames it, so that readers see
// the old or the new file only.
func replace(in folder, name string, create func(tempName string) error) (err error) {
	tempName := ".mini-" + rand.Text()
	// Also after success: a rename between two hard links to one file has no effect.
	defer func() {
		if e := in.Remove(tempName); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if err := create(tempName); err != nil {
		return err
	}
	if existing, err := in.Lstat(name); err == nil && existing.IsDir() {
		return fmt.Errorf("%w: a directory of this name exists", ErrRefused)
	}
	return in.Rename(tempName, name)
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
		err = f.Chmod(mode) // regardless of the umask
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = in.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

type onlyReader struct{ io.Reader }

// hardLink creates a hard link to a file of the tree.
func (u *unpacker) hardLink(target string, path []string) error {
	from, err := splitName(target)
	if err != nil || len(from) == 0 {
		return fmt.Errorf("%w: hard link to %.4096q", ErrRefused, target)
	}
	in, err := u.path.open(from[:len(from)-1], nil)
	if err != nil {
		return fmt.Errorf("link to %.4096q: %w", target, err)
	}
	info, err := in.Lstat(from[len(from)-1])
	if err != nil {
		return fmt.Errorf("link to %.4096q: %w", target, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: hard link to %s", ErrRefused, kind(info.Mode()))
	}
	in, err = u.path.open(path[:len(path)-1], makeDir)
	if err != nil {
		return err
	}
	top := u.path[0]
	return replace(in, path[len(path)-1], func(tempName string) error {
		to := append(append([]string{}, path[:len(path)-1]...), tempName)
		return top.Link(strings.Join(from, "/"), strings.Join(to, "/"))
	})
}

// staysInside reports whether the target of a symbolic link in a directory at this
// depth is below the top, whatever other links exist. A ".." is safe only at the
// beginning of the target: after a name, which may itself be a link, it may lead
// anywhere.
func staysInside(target string, depth int) bool {
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
