package filetools_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// otherUID is the id of an unprivileged user and group.
const otherUID = 65534

// asOtherUser switches to an unprivileged user if the test runs as root, and changes to
// a directory of that user.
func asOtherUser(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Chdir(t.TempDir())
		return
	}
	dir, err := os.MkdirTemp("", "mini-tool-nobody-") //nolint:usetesting // another user cannot access t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chown(dir, otherUID, otherUID))
	t.Chdir(dir)
	// This changes the file system credentials of this thread only.
	runtime.LockOSThread()
	setID := func(id uintptr) {
		for _, call := range []uintptr{syscall.SYS_SETFSGID, syscall.SYS_SETFSUID} {
			_, _, _ = syscall.RawSyscall(call, id, 0, 0) // it returns the previous id, never an error
		}
	}
	setID(otherUID)
	t.Cleanup(func() {
		setID(0)
		runtime.UnlockOSThread()
	})
}

func TestPermissionDenied(t *testing.T) {
	asOtherUser(t)
	for name, mode := range map[string]os.FileMode{"secret": 0, "fixed": 0o444, "plain": 0o644, "closed/f": 0o644, "hidden/f": 0o644} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte("a\n"), mode))
	}
	for dir, mode := range map[string]os.FileMode{"closed": 0o555, "hidden": 0} {
		require.NoError(t, os.Chmod(dir, mode))
		defer os.Chmod(dir, 0o755)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"read", "secret"}, "secret: permission denied"},
		{[]string{"read", "hidden/f"}, "hidden/f: permission denied"},
		{[]string{"write", "fixed", "x"}, "fixed is not to be written (mode -r--r--r--): permission denied"},
		{[]string{"edit", "fixed", "--old", "a", "--new", "b"}, "fixed is not to be written"},
		{[]string{"edit", "secret", "--old", "a", "--new", "b"}, "secret: permission denied"},
		{[]string{"write", "closed/f", "x"}, "nothing can be written into the folder closed: permission denied"},
		{[]string{"write", "closed/new", "x"}, "nothing can be written into the folder closed: permission denied"},
		{[]string{"edit", "closed/f", "--old", "a", "--new", "b"}, "nothing can be written into the folder closed"},
		{[]string{"write", "closed/dir/new", "x"}, "the folder closed/dir cannot be made: permission denied"},
		{[]string{"write", "hidden/f", "x"}, "hidden/f: permission denied"},
	} {
		if got := run(t, nil, tt.args...); got.code != 1 || got.out != "" || !strings.Contains(got.err, tt.want) {
			t.Errorf("%q: %+v; want %q", tt.args, got, tt.want)
		}
	}
	noLeftovers(t, "closed", "f")
	noLeftovers(t, ".", "closed", "fixed", "hidden", "plain", "secret")
	if contentOf(t, "fixed") != "a\n" || contentOf(t, "closed/f") != "a\n" {
		t.Error("something was written")
	}
}

func TestOwnerPreserved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of files")
	}
	workFolder(t, map[string]string{"f": "a\n"})
	require.NoError(t, os.Chown("f", 1234, 4321))
	require.NoError(t, os.Chmod("f", 0o751|os.ModeSetuid))
	require.Equal(t, 0, run(t, nil, "edit", "f", "--old", "a", "--new", "b").code)
	info, err := os.Stat("f")
	require.NoError(t, err)
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 1234 || st.Gid != 4321 {
		t.Errorf("the owner is %d:%d", st.Uid, st.Gid)
	}
	// The kernel clears the set-uid bit of a written file, as for every program.
	if info.Mode().Perm() != 0o751 {
		t.Errorf("the mode is %v", info.Mode())
	}
}

// TestChownNotPermitted: a chown that is not permitted is ignored.
func TestChownNotPermitted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create files of other users")
	}
	asOtherUser(t)
	dir, err := os.Getwd()
	require.NoError(t, err)
	file := filepath.Join(dir, "f")
	done := make(chan error)
	go func() { // on another thread, which still has the rights of root
		err := os.WriteFile(file, []byte("a\n"), 0o666)
		if err == nil {
			err = os.Chmod(file, 0o666)
		}
		done <- err
	}()
	require.NoError(t, <-done)
	if got := run(t, nil, "edit", "f", "--old", "a", "--new", "b"); got.code != 0 || contentOf(t, "f") != "b\n" || modeOf(t, "f") != 0o666 {
		t.Errorf("%+v, mode %v", got, modeOf(t, "f"))
	}
}
