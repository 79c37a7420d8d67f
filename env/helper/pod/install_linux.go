package pod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install copies this program to a directory, as Binary. An init container does that
// for an image without a shell.
func Install(dir string) (err error) {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("install helper: %w", err)
	}
	defer from.Close()                                                                           //nolint:errcheck // only read
	to, err := os.OpenFile(filepath.Join(dir, Binary), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // all users run it
	if err != nil {
		return fmt.Errorf("install helper: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := to.Chmod(0o755); err != nil { // regardless of the umask
		return fmt.Errorf("install helper: %w", err)
	}
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("install helper: %w", err)
	}
	return nil
}
