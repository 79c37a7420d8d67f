// Package binaries holds the helper programs that are put into sandboxes, one
// per architecture, embedded at build time.
//
// scripts/helper.sh builds them into this folder, which in a fresh clone has a
// placeholder only, so that everything compiles; a mini built then says what
// to do when it first needs one.
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

// The pattern takes the placeholder README and what scripts/helper.sh built,
// and leaves the Go files out; a pattern that matched nothing would not compile.
//
//go:embed [Rm]*
var embedded embed.FS

// architectures are those the helper is built for, in Go's names.
var architectures = []string{"amd64", "arm64"}

// ErrNotBuilt is wrapped by For when this mini was built without its helper.
var ErrNotBuilt = errors.New("this mini was built without its sandbox helper: " +
	"run `make build` (or build from a checkout with scripts/helper.sh)")

// Name is the file name of the helper for an architecture.
func Name(arch string) string { return "mini-helper-linux-" + arch }

// checksum is the ending of the files with the hashes, in the form of sha256sum.
const checksum = ".sha256"

// Hash is the hash that For returns, without reading the binary where
// scripts/helper.sh has left its checksum beside it: most runs find their helper
// in the engine already and never need its bytes.
func Hash(dir, arch string) (string, error) {
	if slices.Contains(architectures, arch) {
		line, err := fs.ReadFile(files(dir), Name(arch)+checksum)
		if sum, _, _ := strings.Cut(string(line), " "); err == nil && len(sum) == hex.EncodedLen(sha256.Size) {
			return sum, nil
		}
	}
	_, sum, err := For(dir, arch)
	return sum, err
}

// files are those of a folder, or the embedded ones where dir is empty.
func files(dir string) fs.FS {
	if dir == "" {
		return embedded
	}
	return os.DirFS(dir)
}

// For returns the helper for a Linux sandbox of the architecture ("amd64" or
// "arm64") and the SHA-256 of its bytes in hex. It is the one in dir, or the
// embedded one where dir is empty.
func For(dir, arch string) (binary []byte, hash string, err error) {
	if !slices.Contains(architectures, arch) {
		return nil, "", fmt.Errorf("no sandbox helper for architecture %q: there are %q", arch, architectures)
	}
	b, err := load(files(dir), Name(arch))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("find %s: %w", Name(arch), ErrNotBuilt)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read sandbox helper: %w", err)
	}
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:]), nil
}

// load returns a file as it is, or the contents of its compressed form.
func load(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return fs.ReadFile(fsys, name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
