package harbor

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/env/files"
)

// maxFolder bounds the size of a task's folder, in bytes.
const maxFolder = 4 << 30

// errOutside is the error about a link that leaves its folder.
var errOutside = errors.New("the link leaves the folder")

// Walk calls visit for each file, folder and link below dir, with names relative to dir.
// Links that leave dir are an error.
func Walk(dir string, visit func(h *tar.Header, content io.Reader) error) error {
	pipe, w := io.Pipe()
	done := make(chan struct{})
	go func() { // ends when pipe is closed
		defer close(done)
		w.CloseWithError(files.Pack(w, dir))
	}()
	defer func() {
		pipe.Close() //nolint:errcheck // never fails
		<-done
	}()
	total := int64(0)
	for r := tar.NewReader(pipe); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, h.Name, _ = strings.Cut(h.Name, "/")
		if h.Name = strings.TrimSuffix(h.Name, "/"); h.Name == "" {
			continue // the folder itself
		}
		if total += h.Size; total > maxFolder {
			return fmt.Errorf("%s: more than %d bytes", dir, int64(maxFolder))
		}
		if h.Typeflag == tar.TypeSymlink && (path.IsAbs(h.Linkname) || !filepath.IsLocal(path.Join(path.Dir(h.Name), h.Linkname))) { //nolint:gosec // only compared
			return fmt.Errorf("%s/%s -> %.80q: %w", dir, h.Name, h.Linkname, errOutside)
		}
		if err := visit(h, r); err != nil {
			return err
		}
	}
}

// HashFolder returns the SHA-256 of the names, permissions and contents of the files below
// dir, in hex. The times of files do not count.
func HashFolder(dir string) (string, error) {
	var lines []string
	err := Walk(dir, func(h *tar.Header, content io.Reader) error {
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%q %c %o %q %x", h.Name, h.Typeflag, h.Mode&0o111, h.Linkname, sum.Sum(nil)))
		return nil
	})
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:]), err
}
