//go:build unix

package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// errOwned means that a process, possibly this one, holds the lock, or that another
// user owns the directory.
var errOwned = errors.New("directory is in use")

// lock locks a directory of this user; closing the file releases the lock. It does not
// follow symbolic links, because every user can write to the temporary directory.
func lock(dir string) (_ *os.File, err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0) //nolint:gosec // the owner is checked below
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // nothing was written
		}
	}()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st, ok := opened.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
		return nil, errOwned
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%w: %w", errOwned, err)
	}
	// The previous holder of the lock may have removed the directory meanwhile.
	current, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(opened, current) {
		return nil, fs.ErrNotExist
	}
	return f, nil
}
