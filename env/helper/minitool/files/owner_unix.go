//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and group of the one that it replaces,
// where that is allowed.
func keepOwner(f *os.File, was fs.FileInfo) error {
	st, ok := was.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	made, err := f.Stat()
	if err != nil {
		return err
	}
	if now, ok := made.Sys().(*syscall.Stat_t); ok && now.Uid == st.Uid && now.Gid == st.Gid {
		return nil
	}
	err = f.Chown(int(st.Uid), int(st.Gid))
	if errors.Is(err, fs.ErrPermission) {
		err = f.Chown(-1, int(st.Gid)) // a group that we are in
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) { // an owner that this namespace does not know
		return nil
	}
	return err
}

// links is how many names a file has.
func links(info fs.FileInfo) int64 {
	if info == nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return int64(st.Nlink) //nolint:unconvert // its type differs from system to system
}
