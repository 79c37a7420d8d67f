//go:build unix

package trajectories_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
)

// The readers of journals and predictions return an error for a pipe, which would block, and
// for an endless file.
func TestReadRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	pipe, endless := filepath.Join(dir, "pipe"), filepath.Join(dir, "endless")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("/dev/zero", endless))
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

// TestPredictionsFromPipe checks that ReadPipedPredictions fails for a pipe without a writer, and
// reads a pipe with a writer to its end, as for -p <(jq ...).
func TestPredictionsFromPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	if _, err := trajectories.ReadPipedPredictions(path); err == nil || !strings.Contains(err.Error(), "pipe is empty") {
		t.Errorf("without a writer: %v", err)
	}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	patch := strings.Repeat("x", 1<<20) // larger than a pipe buffer
	written := make(chan error, 1)
	go func() {
		_, err := fmt.Fprintf(in, `[{"instance_id":"a","model_patch":"%s"}]`, patch)
		written <- err
		_ = in.Close()
	}()
	name := fmt.Sprintf("/dev/fd/%d", out.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("no /dev/fd here:", errors.Join(err, in.Close()))
	}
	got, err := trajectories.ReadPipedPredictions(name)
	if err != nil || len(got.List) != 1 || got.List[0].Patch != patch {
		t.Errorf("%d predictions, %v", len(got.List), err)
	}
	assert.NoError(t, <-written)
}
