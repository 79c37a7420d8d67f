//go:build unix

package docker

import "golang.org/x/sys/unix"

// freeBytes returns the space available to unprivileged users on the disk of dir; false
// if unknown.
func freeBytes(dir string) (int64, bool) {
	var s unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
