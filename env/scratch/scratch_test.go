package scratch_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestMain lets the test binary run as a process that owns a directory and waits to be
// killed.
func TestMain(m *testing.M) {
	if os.Getenv("MINI_TEST_OWNER") == "1" {
		dir, err := scratch.New("owner")
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(dir + "\n") //nolint:errcheck // the test detects missing output
		time.Sleep(time.Hour)             // until the test kills it; without a timer Go would end it as a deadlock
	}
	os.Exit(m.Run())
}

func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	own, err := scratch.New("own")
	require.NoError(t, err)
	other := filepath.Join(os.TempDir(), "someone-else")
	link := filepath.Join(os.TempDir(), "mini-scratch-link")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.Symlink(other, link))

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "MINI_TEST_OWNER=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	dir, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dir = strings.TrimSpace(dir)
	unreadable := filepath.Join(dir, "a", "b")
	require.NoError(t, os.MkdirAll(unreadable, 0o700))
	require.NoError(t, os.Chmod(unreadable, 0))
	assert.Equal(t, 0, len(scratch.Sweep()), "while its owner lives: removed")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	assert.Equal(t, []string{dir}, scratch.Abandoned())
	assert.Equal(t, []string{dir}, scratch.Sweep(), "removed")
	for _, path := range []string{own, other, link} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was removed: %v", path, err)
		}
	}
	for range 2 {
		assert.NoError(t, scratch.Remove(own))
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of the dead owner: %v", err)
	}
}

// TestRemoveStaysInside: a symbolic link in the directory is removed, but not its
// target.
func TestRemoveStaysInside(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := scratch.New("links")
	require.NoError(t, err)
	outside := t.TempDir()
	require.NoError(t, os.Chmod(outside, 0o500))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, scratch.Remove(dir))
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("the target of the link is now %v, %v", info, err)
	}
}

// TestKeep: a kept directory exists under its new name and is not swept.
func TestKeep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := scratch.New("a__b-1")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "note"), []byte("left"), 0o600))
	kept, err := scratch.Keep(dir)
	require.NoError(t, err)
	if err := scratch.Remove(dir); err != nil {
		t.Errorf("remove a kept directory: %v", err)
	}
	assert.Equal(t, 0, len(scratch.Sweep()), "swept")
	if got, err := os.ReadFile(filepath.Join(kept, "note")); err != nil || string(got) != "left" {
		t.Errorf("in the kept folder: %q, %v", got, err)
	}
}

// TestCreate: a directory created with Create is like one created with New.
func TestCreate(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := scratch.NewPath("later")
	require.NoError(t, err)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || !filepath.IsAbs(dir) {
		t.Fatalf("%s: %v before it was made", dir, err)
	}
	assert.NoError(t, scratch.Remove(dir))
	require.NoError(t, scratch.Create(dir))
	assert.Error(t, scratch.Create(dir), "the directory was created twice")
	assert.Equal(t, "", strings.Join(scratch.Abandoned(), " "), "a sweep would remove")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	assert.NoError(t, scratch.Remove(dir))
	_, err = os.Stat(dir)
	assert.ErrorIs(t, err, fs.ErrNotExist, "after it was removed")
}
