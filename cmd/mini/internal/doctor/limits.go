package doctor

import (
	"math"
	"syscall"
)

// Free is what this user may still write to the disk of a folder, in bytes; false
// where that cannot be told.
func Free(dir string) (int64, bool) {
	n, err := free(dir)
	return int64(min(n, math.MaxInt64)), err == nil
}

// free is what this user may still write to the disk of a folder, in bytes.
func free(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// openFiles is how many files this process may have open. Go has raised the
// soft limit to the hard one when it started.
func openFiles() (uint64, bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return l.Cur, true
}
