package trajectories_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
)

// TestAppendToAFullDisk uses a small tmpfs as the disk. Mounting it requires privileges.
func TestAppendToAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("mini-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small tmpfs here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	path := filepath.Join(dir, "j")
	j, err := trajectories.Create(path, trajectories.Header{})
	require.NoError(t, err)
	written := 1
	for ; written < 100; written++ {
		if _, err = j.Append(trajectories.TypeDiff, strings.Repeat("x", 5000)); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want no space left", err)
	}
	_, err = j.Append(trajectories.TypeDiff, "x")
	assert.ErrorIs(t, err, syscall.ENOSPC, "append after a failed write")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if !strings.HasSuffix(string(data), "}\n") {
		t.Error("the journal ends in a torn line")
	}
	assert.Equal(t, written, len(records(t, path)), "records")
}
