// Package version holds the version of mini.
package version

import (
	"fmt"
	"runtime"
)

// Version is set by the linker.
var Version = "dev"

// Long returns the version with the system that mini was built for and the Go
// release that built it.
func Long() string {
	return fmt.Sprintf("%s (%s/%s, %s)", Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
