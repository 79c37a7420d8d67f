//go:build unix

package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// errOwned says that somebody else holds the lock, or owns the folder.
var errOwned = errors.New("folder is another's")

// lock takes the lock of a folder of this user's, which the file holds. It
// follows no link: the temporary directory is open to everybody.
func lock(dir string) (_ *os.File, err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0) //nolint:gosec // a folder of ours, or one that is about to be judged
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
	// Whoever had the lock may have removed the folder meanwhile.
	now, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(opened, now) {
		return nil, fs.ErrNotExist
	}
	return f, nil
}
