//go:build unix

package trajectories_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// The readers of journals and predictions return an error for a pipe, which would block, and
// for an endless file.
func TestReadRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	pipe, endless := filepath.Join(dir, "pipe"), filepath.Join(dir, "endless")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", endless); err != nil {
		t.Fatal(err)
	}
	first := func(path string) error {
		for _, err := range trajectories.Read(path) {
			return err
		}
		return nil
	}
	for name, read := range map[string]func(string) error{
		"Read":            first,
		"ReadOutcome":     func(p string) error { _, _, err := trajectories.ReadOutcome(p); return err },
		"ReadHeader":      func(p string) error { _, err := trajectories.ReadHeader(p); return err },
		"ReadPredictions": func(p string) error { _, err := trajectories.ReadPredictions(p); return err },
		"Reopen":          func(p string) error { _, err := trajectories.Reopen(p, trajectories.Resume{}); return err },
	} {
		for _, path := range []string{pipe, endless} {
			if err := read(path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of %s: %v", name, filepath.Base(path), err)
			}
		}
	}
}
