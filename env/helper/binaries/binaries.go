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

// For returns the embedded helper for a Linux sandbox of the architecture
// ("amd64" or "arm64") and the SHA-256 of its bytes in hex.
func For(arch string) (binary []byte, hash string, err error) {
	return read(embedded, arch)
}

// FromDir is For with the files of a folder instead of the embedded ones:
// tests build the helper themselves.
func FromDir(dir, arch string) (binary []byte, hash string, err error) {
	return read(os.DirFS(dir), arch)
}

// Hash is the hash that For returns, without reading the binary where
// scripts/helper.sh has left its checksum beside it: most runs find their helper
// in the engine already and never need its bytes.
func Hash(arch string) (string, error) { return hash(embedded, arch) }

// HashInDir is to FromDir as Hash is to For.
func HashInDir(dir, arch string) (string, error) { return hash(os.DirFS(dir), arch) }

// checksum is the ending of the files with the hashes, in the form of sha256sum.
const checksum = ".sha256"

func hash(fsys fs.FS, arch string) (string, error) {
	if slices.Contains(architectures, arch) {
		line, err := fs.ReadFile(fsys, Name(arch)+checksum)
		if sum, _, _ := strings.Cut(string(line), " "); err == nil && len(sum) == hex.EncodedLen(sha256.Size) {
			return sum, nil
		}
	}
	_, sum, err := read(fsys, arch)
	return sum, err
}

func read(fsys fs.FS, arch string) ([]byte, string, error) {
	if !slices.Contains(architectures, arch) {
		return nil, "", fmt.Errorf("no sandbox helper for architecture %q: there are %q", arch, architectures)
	}
	b, err := load(fsys, Name(arch))
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
