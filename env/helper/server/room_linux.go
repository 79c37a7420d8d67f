package server

import (
	"os"
	"syscall"
)

// scarce is, in bytes, what is no room to work in.
const scarce = 64 << 10

// rootFull says that the file system of "/" has no room left. It takes a few
// microseconds. What a file system keeps back for root counts for root.
func rootFull() bool {
	var s syscall.Statfs_t
	if err := syscall.Statfs("/", &s); err != nil || s.Blocks == 0 { // 0: it does not count
		return false
	}
	free := s.Bavail
	if os.Geteuid() == 0 {
		free = s.Bfree
	}
	return free*uint64(s.Bsize) < scarce
}
