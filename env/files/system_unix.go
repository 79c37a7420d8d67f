//go:build unix

package files

import (
	"os"
	"strings"
	"syscall"
)

// readFlags open a file without blocking, even if a pipe has replaced it.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// isLocal reports whether a part of a name is a valid file name on this system.
func isLocal(part string) bool { return strings.IndexByte(part, 0) < 0 }
