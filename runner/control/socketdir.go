package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxPath is the maximum length of a socket's path, in bytes: 107 on Linux.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// sharedTempDir is the directory for temporary files of all users.
const sharedTempDir = "/tmp"

// socketName returns the name of a run's socket. It is a hash of the folder's path,
// so that Listen finds and removes a socket that a killed process left.
func socketName(run string) string {
	if abs, err := filepath.Abs(run); err == nil {
		run = abs
	}
	sum := sha256.Sum256([]byte(run))
	return hex.EncodeToString(sum[:8]) + ".sock"
}

// isSocketName reports whether name has the form of socketName.
func isSocketName(name string) bool {
	digits, ok := strings.CutSuffix(name, ".sock")
	_, err := hex.DecodeString(digits)
	return ok && len(digits) == 16 && err == nil
}

// socketDirs returns the directories for sockets in order of preference: one in the
// user's runtime directory if XDG_RUNTIME_DIR names it, and one in sharedTempDir.
func socketDirs() []string {
	var all []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, "mini"))
	}
	return append(all, fmt.Sprintf("%s/mini-%d", sharedTempDir, os.Getuid()))
}

// findSocketDir creates and returns the first usable directory for a socket.
func findSocketDir(dirs []string, name string) (dir string, err error) {
	var reasons []string
	for _, dir := range dirs {
		if n := len(filepath.Join(dir, name)); n > maxPath {
			reasons = append(reasons, fmt.Sprintf("%s: socket path would exceed %d bytes (%d)", dir, maxPath, n))
			continue
		}
		dirErr := makePrivate(dir)
		if dirErr == nil {
			return dir, nil
		}
		reasons = append(reasons, dirErr.Error())
	}
	return "", errors.New("no usable directory for a socket: " + strings.Join(reasons, "; "))
}

// makePrivate creates a directory that only this user can access. If it exists,
// makePrivate checks its owner and does not follow a link, because other users can
// write to sharedTempDir.
func makePrivate(dir string) error {
	if parent := filepath.Dir(dir); parent != sharedTempDir {
		// After sudo, the runtime directory may belong to another user.
		if err := checkOwned(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := checkOwned(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory of this user
}

// checkOwned checks that dir is a directory of this user.
func checkOwned(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case ownerUID(info) != os.Getuid():
		return fmt.Errorf("%s is another user's", dir)
	}
	return nil
}

// ownerUID returns the user ID of a file's owner; -1 if unknown.
func ownerUID(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
