package memory

import (
	"syscall"

	"github.com/minibench/mini/internal/atomicfile"
)

// readFlags keep one who swaps the file for a link, or for a pipe that nobody
// writes to, from being followed or waited for.
const readFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// replace puts a file in the place of another, or leaves that as it is. Nobody
// but its owner reads it.
func replace(path string, data []byte) error {
	return atomicfile.Write(path, data, fileMode)
}
