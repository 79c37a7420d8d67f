//go:build unix

package files

import (
	"os"
	"strings"
	"syscall"
)

// forReading never waits for the other end of a pipe that took a file's place.
const forReading = os.O_RDONLY | syscall.O_NONBLOCK

// isLocal reports whether a part of a name is one name on this system.
func isLocal(part string) bool { return strings.IndexByte(part, 0) < 0 }
