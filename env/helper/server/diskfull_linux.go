package server

import (
	"os"
	"syscall"
)

// minFree is the number of free bytes below which a file system counts as full.
const minFree = 64 << 10

// rootFull reports whether the file system of "/" is full. It takes a few
// microseconds. Blocks reserved for root count as free for root.
func rootFull() bool {
	var s syscall.Statfs_t
	if err := syscall.Statfs("/", &s); err != nil || s.Blocks == 0 { // 0: the file system has no block count
		return false
	}
	free := s.Bavail
	if os.Geteuid() == 0 {
		free = s.Bfree
	}
	return free*uint64(s.Bsize) < minFree
}
