// Package atomicfile replaces files whole or not at all: readers see the old file
// or the new one, never a part of one.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write replaces the file at path with data. The file has the permissions perm that
// the umask leaves.
func Write(path string, data []byte, perm os.FileMode) error {
	return WriteFunc(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc replaces the file at path with what write writes. If write fails, the
// file stays as it was. The temporary file stands beside path: a file on another
// file system cannot be renamed.
func WriteFunc(path string, perm os.FileMode, write func(io.Writer) error) (err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(perm), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
