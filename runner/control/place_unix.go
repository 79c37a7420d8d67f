//go:build unix

package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxPath is how long the path of a socket may be, in bytes: 107 on Linux.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// shared is a folder for everybody's temporary files.
const shared = "/tmp"

// private makes a folder that is this user's alone, or finds it so. It follows no
// link: others may write beside it.
func private(dir string) error {
	if parent := filepath.Dir(dir); parent != shared {
		// As sudo leaves it, the runtime folder may be another user's.
		if err := mine(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := mine(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err == nil && info.Mode().Perm() != 0o700 {
		err = os.Chmod(dir, 0o700) //nolint:gosec // a folder, of this user
	}
	return err
}

// mine says that a folder is one, and this user's.
func mine(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if owner(info) != os.Getuid() {
		return fmt.Errorf("%s is another user's", dir)
	}
	return nil
}

// closed makes a socket this user's alone before it has a path. Linux takes the
// mode over; elsewhere its folder keeps others out until it has been set.
func closed(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}

// owner is whose a file is; -1 where nobody says.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
