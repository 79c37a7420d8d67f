//go:build !linux

package program

import (
	"fmt"
	"os"
)

// Main ends the process with an error: the helper needs Linux.
func Main() {
	fmt.Fprintln(os.Stderr, "mini-helper runs inside Linux sandboxes only")
	os.Exit(1)
}

// IsStarted returns false.
func IsStarted() bool { return false }
