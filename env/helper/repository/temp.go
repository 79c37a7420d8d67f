package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const tempPrefix = "mini-tmp."

// tempPlaces returns the folders for temporary folders, in order of preference. The git
// directory is one of them only if the repository is deleted with the sandbox, because a
// program that is killed does not clean up.
func tempPlaces(commonDir string, disposable bool) []string {
	places := []string{"/tmp", "/var/tmp"}
	if dir := os.Getenv("TMPDIR"); filepath.IsAbs(dir) {
		places = append([]string{dir}, places...)
	}
	if disposable && commonDir != "" {
		places = append(places, commonDir)
	}
	return append(places, "/dev/shm")
}

// makeTemp makes a temporary folder at the first of the places that has so many free
// KiB. free is freeKiB, except in tests.
func makeTemp(places []string, tag string, kib int64, free func(string) (int64, error)) (string, error) {
	var tried []string
	for _, place := range places {
		n, err := free(place)
		if err == nil && n < kib {
			tried = append(tried, fmt.Sprintf("%s (%d KiB free)", place, n))
			continue
		}
		dir, err := os.MkdirTemp(place, tempPrefix+tag)
		if err == nil {
			return dir, nil
		}
		tried = append(tried, err.Error())
	}
	return "", fmt.Errorf("%w of %d KiB; tried %s", errNoPlace, kib, strings.Join(tried, ", "))
}

// freeKiB returns the free space of a disk.
func freeKiB(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize) >> 10, nil //nolint:unconvert // the types differ between architectures
}

// removeTemp removes the temporary folders with a tag.
func removeTemp(places []string, tag string) {
	for _, place := range places {
		entries, err := os.ReadDir(place)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), tempPrefix+tag) {
				_ = os.RemoveAll(filepath.Join(place, e.Name())) // it may belong to another user
			}
		}
	}
}
