// Package version holds the version of mini.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// linked is set by the linker.
var linked string

// Version is the version that make build has set, or that of the module: "v1.2.3" after
// go install, "dev" in a checkout without git.
var Version = cmp.Or(linked, moduleVersion(), "dev")

// Long returns the version with the system that mini was built for and the Go
// release that built it.
func Long() string {
	return fmt.Sprintf("%s (%s/%s, %s)", Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// Module returns the module of mini in this program, which may be another program that
// embeds mini. Its Sum is empty if it was built from a folder. It returns nil if the
// program does not say which modules it has.
func Module() *debug.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != "github.com/minibench/mini" {
			continue
		}
		if m.Replace != nil {
			return m.Replace
		}
		return m
	}
	return nil
}

func moduleVersion() string {
	if m := Module(); m != nil && m.Version != "(devel)" {
		return m.Version
	}
	return ""
}
