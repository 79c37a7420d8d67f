package memory

import (
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// readFlags keep one who swaps the file for a link, or for a pipe that nobody
// writes to, from being followed or waited for.
const readFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// replace puts a file in the place of another, or leaves that as it is. Nobody
// but its owner reads it.
func replace(path string, data []byte) error {
	return renameio.WriteFile(path, data, fileMode, renameio.IgnoreUmask(), renameio.WithTempDir(filepath.Dir(path)))
}
