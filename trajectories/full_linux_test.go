package trajectories_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// TestAppendToAFullDisk uses a small tmpfs as the disk. Mounting it requires privileges.
func TestAppendToAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("mini-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "j")
	j, err := trajectories.Create(path, trajectories.Header{})
	if err != nil {
		t.Fatal(err)
	}
	written := 1
	for ; written < 100; written++ {
		if _, err = j.Append(trajectories.TypeDiff, strings.Repeat("x", 5000)); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want no space left", err)
	}
	if _, err := j.Append(trajectories.TypeDiff, "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append after a failed write: %v, want the same failure", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(data), "}\n") {
		t.Error("the journal ends in a torn line")
	}
	if n := len(records(t, path)); n != written {
		t.Errorf("%d records, want %d", n, written)
	}
}
