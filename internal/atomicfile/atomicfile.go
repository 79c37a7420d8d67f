// Package atomicfile replaces files atomically: readers see the old or the new file,
// never a part of one.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write replaces the file at path with data. The new file's permissions are perm, reduced
// by the umask.
func Write(path string, data []byte, perm os.FileMode) error {
	return WriteFunc(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc replaces the file at path with the data that write writes. If write
// returns an error the file is unchanged. The temporary file is in the same directory,
// because a rename does not work across file systems.
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
