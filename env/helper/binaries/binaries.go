// Package binaries embeds the helper programs that are copied into sandboxes, one per
// architecture.
//
// scripts/helper.sh builds them into this folder. A fresh clone, and the module that go
// install reads, hold only a placeholder, so that the package compiles. After a call of
// Init the program is its own helper then, or one is built; otherwise Load returns an
// error that wraps ErrNotBuilt.
package binaries

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// The pattern matches the placeholder README and the files that scripts/helper.sh
// builds, but not the Go files. A pattern without matches would not compile.
//
//go:embed [Rm]*
var embedded embed.FS

// architectures are the GOARCH values for which the helper is built.
var architectures = []string{"amd64", "arm64"}

// ErrNotBuilt is wrapped by the error of Load if mini was built without its helper, and
// there is nothing else to use.
var ErrNotBuilt = errors.New("this mini was built without its sandbox helper: " +
	"build it with CGO_ENABLED=0 or with `make build`, or put Go's toolchain on the PATH")

// Name returns the file name of the helper for an architecture.
func Name(arch string) string { return "mini-helper-linux-" + arch }

// checksumSuffix is the suffix of the files with the hashes, in the format of sha256sum.
const checksumSuffix = ".sha256"

// Hash returns the SHA-256 of the helper in dir, in hex, or of the embedded one if dir
// is empty. If scripts/helper.sh has written a checksum file, Hash does not read the
// binary: most runs do not need it, because the container engine has the helper
// already.
func Hash(dir, arch string) (string, error) {
	if slices.Contains(architectures, arch) {
		line, err := fs.ReadFile(files(dir), Name(arch)+checksumSuffix)
		if sum, _, _ := strings.Cut(string(line), " "); err == nil && len(sum) == hex.EncodedLen(sha256.Size) {
			return sum, nil
		}
	}
	f, err := open(dir, arch)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read sandbox helper: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// files returns the files of dir, or the embedded ones if dir is empty.
func files(dir string) fs.FS {
	if dir == "" {
		return embedded
	}
	return os.DirFS(dir)
}

// Load returns the helper for a Linux sandbox of an architecture ("amd64" or "arm64")
// and the SHA-256 of its bytes in hex. It is read from dir, or embedded if dir is
// empty.
func Load(dir, arch string) (binary []byte, hash string, err error) {
	f, err := open(dir, arch)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, "", fmt.Errorf("read sandbox helper: %w", err)
	}
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:]), nil
}

// open opens the helper that Load returns.
func open(dir, arch string) (io.ReadCloser, error) {
	if !slices.Contains(architectures, arch) {
		return nil, fmt.Errorf("no sandbox helper for architecture %q: there are %q", arch, architectures)
	}
	f, err := openFile(files(dir), Name(arch))
	if errors.Is(err, fs.ErrNotExist) && dir == "" {
		f, err = openSubstitute(arch)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotBuilt
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", Name(arch), err)
	}
	return f, nil
}

// openFile opens name.gz, decompressed, or name.
func openFile(fsys fs.FS, name string) (io.ReadCloser, error) {
	f, err := fsys.Open(name + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return fsys.Open(name)
	}
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}
