//go:build unix

package docker

import "golang.org/x/sys/unix"

// freeBytes is the room below a folder of this machine that its users have.
func freeBytes(dir string) (int64, bool) {
	var s unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
