package trajectories

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// writeAtomic replaces the file at path with what write gives, or leaves it as
// it was. Readers see the old file or the new one, never a part. The temporary
// file stands beside the target: another file system could not be renamed from.
func writeAtomic(path string, write func(io.Writer) error) (err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
