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

// maxRestricted is the maximum number of restricted directories (see restrictedDir).
const maxRestricted = 4096

// Unpack extracts a tar stream into dir. It creates dir if it does not exist. It
// follows symbolic links in the path of dir, but none below dir. Existing files and
// links are replaced, existing directories are kept. Unpack does not read beyond the
// stream's end mark.
//
// The error wraps ErrRefused if the stream is invalid, io.ErrUnexpectedEOF if it ends
// before the end mark, or the first error of r. Files unpacked before the error remain,
// each of them complete.
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
		// Next first skips the rest of the previous file. The file's content has been
		// read, so at the end of the stream counted.n is the size of the file's padding,
		// less than a block, and of the end mark.
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

// block is the block size of a stream, in bytes. The end mark is two blocks of zeros; one
// is accepted.
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

// restrictedDir is a directory whose mode denies its owner some access. Unpack sets the
// mode at the end, after it has created the files in the directory.
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
	parent, err := u.path.open(path[:len(path)-1], makeDir)
	if err != nil {
		return err
	}
	name := path[len(path)-1]
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return replace(parent, name, func(tempName string) error { return u.file(parent, tempName, h, mode, content) })
	case tar.TypeSymlink:
		if !u.limits.AllowOutsideLinks && !staysInside(h.Linkname, len(path)-1) {
			return fmt.Errorf("%w: symbolic link to %.4096q, which is or may be outside the directory", ErrRefused, h.Linkname)
		}
		return replace(parent, name, func(tempName string) error { return parent.Symlink(h.Linkname, tempName) })
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

func makeDir(parent folder, name string) error { return parent.Mkdir(name, 0o777) }

// dir creates a directory, or sets the mode of an existing one. The owner has full
// access to it until restrict sets the final mode.
func (u *unpacker) dir(path []string, mode fs.FileMode) error {
	dir, err := u.path.open(path, makeDir)
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
	return dir.Chmod(".", mode|ownerMode)
}

// restrict sets the modes of the restricted directories in reverse order, so that inner
// ones come first if the stream has parents before their contents.
func (u *unpacker) restrict() error {
	for i := len(u.restricted) - 1; i >= 0; i-- {
		d := u.restricted[i]
		dir, err := u.path.open(d.path, nil)
		if err == nil {
			err = dir.Chmod(".", d.mode)
		}
		if err != nil {
			return fmt.Errorf("unpack %q: %w", strings.Join(d.path, "/"), err)
		}
	}
	return nil
}

// replace creates a file under a temporary name and renames it to name, so that readers
// see either the old or the new file.
func replace(parent folder, name string, create func(tempName string) error) (err error) {
	tempName := ".mini-" + rand.Text()
	// Remove the temporary name after success too: renaming one hard link to another of
	// the same file has no effect.
	defer func() {
		if removeErr := parent.Remove(tempName); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}()
	if err := create(tempName); err != nil {
		return err
	}
	if existing, err := parent.Lstat(name); err == nil && existing.IsDir() {
		return fmt.Errorf("%w: a directory of this name exists", ErrRefused)
	}
	return parent.Rename(tempName, name)
}

func (u *unpacker) file(parent folder, name string, h *tar.Header, mode fs.FileMode, content io.Reader) error {
	f, err := parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
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
		err = parent.Chtimes(name, h.ModTime, h.ModTime)
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
	parent, err := u.path.open(from[:len(from)-1], nil)
	if err != nil {
		return fmt.Errorf("link to %.4096q: %w", target, err)
	}
	info, err := parent.Lstat(from[len(from)-1])
	if err != nil {
		return fmt.Errorf("link to %.4096q: %w", target, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: hard link to %s", ErrRefused, kind(info.Mode()))
	}
	parent, err = u.path.open(path[:len(path)-1], makeDir)
	if err != nil {
		return err
	}
	top := u.path[0]
	return replace(parent, path[len(path)-1], func(tempName string) error {
		to := append(append([]string{}, path[:len(path)-1]...), tempName)
		return top.Link(strings.Join(from, "/"), strings.Join(to, "/"))
	})
}

// staysInside reports whether the target of a symbolic link in a directory at this
// depth is the top or below it, whichever other links exist. The top has depth 0. A ".."
// is safe only at the beginning of the target: after a name, which may itself be a link,
// it may lead anywhere.
func staysInside(target string, depth int) bool {
	if target == "" || strings.HasPrefix(target, "/") {
		return false
	}
	afterName := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			if !isLocal(part) {
				return false
			}
			afterName = true
		case afterName || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}
