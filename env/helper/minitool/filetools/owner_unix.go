//go:build unix

package filetools

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// copyOwner sets the owner and group of a new file to those of the file it replaces,
// as far as permitted.
func copyOwner(f *os.File, old fs.FileInfo) error {
	st, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	current, err := f.Stat()
	if err != nil {
		return err
	}
	if cur, ok := current.Sys().(*syscall.Stat_t); ok && cur.Uid == st.Uid && cur.Gid == st.Gid {
		return nil
	}
	err = f.Chown(int(st.Uid), int(st.Gid))
	if errors.Is(err, fs.ErrPermission) {
		err = f.Chown(-1, int(st.Gid)) // allowed if this process is in the group
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) { // EINVAL: the owner is not mapped in this user namespace
		return nil
	}
	return err
}

// links returns the number of hard links of a file; 0 if unknown.
func links(info fs.FileInfo) int64 {
	if info == nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return int64(st.Nlink)
}
