package trajectories

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeAtomic is as near to an atomic replacement as Windows allows: a file
// beside the target, renamed over it.
func writeAtomic(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = write(w)
	if flushed := errors.Join(w.Flush(), f.Sync(), f.Close()); err == nil && flushed != nil {
		err = fmt.Errorf("write %s: %w", path, flushed)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
