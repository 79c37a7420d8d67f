package doctor

import (
	"math"
	"syscall"
)

// FreeSpace returns the free bytes on a folder's disk that this user may use. It returns false
// if the number is unknown.
func FreeSpace(dir string) (int64, bool) {
	n, err := freeBytes(dir)
	return int64(min(n, math.MaxInt64)), err == nil
}

// freeBytes returns the free bytes on a folder's disk that this user may use.
func freeBytes(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// maxOpenFiles returns the limit of open files of this process, or false if the limit is unknown.
// The Go runtime has raised the soft limit to the hard limit.
func maxOpenFiles() (uint64, bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return l.Cur, true
}
