package control

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxPath is how long the path of a socket may be, in bytes: 107 on Linux.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// shared is a folder for everybody's temporary files.
const shared = "/tmp"

// newName is a name for the socket of a run, which no other run has.
func newName() string {
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails
	return hex.EncodeToString(unique[:]) + ".sock"
}

// isSocketName says whether a file is called as newName does.
func isSocketName(name string) bool {
	digits, ok := strings.CutSuffix(name, ".sock")
	_, err := hex.DecodeString(digits)
	return ok && len(digits) == 16 && err == nil
}

// places are where sockets may be, the best first: the user's runtime folder, and
// one that is like it.
func places() []string {
	var all []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, "mini"))
	}
	return append(all, fmt.Sprintf("%s/mini-%d", shared, os.Getuid()))
}

// findPlace makes a folder for the socket of that name.
func findPlace(places []string, name string) (dir string, err error) {
	var why []string
	for _, dir := range places {
		if n := len(filepath.Join(dir, name)); n > maxPath {
			why = append(why, fmt.Sprintf("%s: a socket's path has %d bytes at most, and there it would have %d", dir, maxPath, n))
			continue
		}
		failed := private(dir)
		if failed == nil {
			return dir, nil
		}
		why = append(why, failed.Error())
	}
	return "", errors.New("no folder can hold a socket: " + strings.Join(why, "; "))
}

// private makes a folder that is this user's alone, or finds it so. It follows no
// link: others may write beside it.
func private(dir string) error {
	if parent := filepath.Dir(dir); parent != shared {
		// As sudo leaves it, the runtime folder may be another user's.
		if err := mine(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := mine(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a folder, of this user
}

// mine says that a folder is one, and this user's.
func mine(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case owner(info) != os.Getuid():
		return fmt.Errorf("%s is another user's", dir)
	}
	return nil
}

// owner is whose a file is; -1 where nobody says.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
