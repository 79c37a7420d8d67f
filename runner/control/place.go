package control

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// socketName is how sockets of runs are called: a hash of the folder's path, and
// something that no other run has.
var socketName = regexp.MustCompile(`^[0-9a-f]{16}\.sock$`)

// newName is the name of a socket for a run.
func newName(run string) (string, error) {
	path, err := filepath.Abs(run)
	if err != nil {
		return "", err
	}
	var unique [4]byte
	if _, err := rand.Read(unique[:]); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:4]) + hex.EncodeToString(unique[:]) + ".sock", nil
}

// places are where sockets may be, the best first: the user's runtime folder, and
// one that is like it.
func places() []string {
	var all []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, "mini"))
	}
	return append(all, fmt.Sprintf("/tmp/mini-%d", os.Getuid()))
}

// findPlace makes a folder for the socket of that name.
func findPlace(places []string, name string) (dir string, err error) {
	var why []string
	for _, dir := range places {
		failed := fit(dir, name)
		if failed == nil {
			return dir, nil
		}
		why = append(why, failed.Error())
	}
	return "", errors.New("no folder can hold a socket: " + strings.Join(why, "; "))
}

// fit makes a folder ready to hold a socket of that name.
func fit(dir, name string) error {
	if n := len(filepath.Join(dir, name)); n > maxPath {
		return fmt.Errorf("%s: a socket's path has %d bytes at most, and there it would have %d", dir, maxPath, n)
	}
	return private(dir)
}
