//go:build !linux

package process

import (
	"os"
	"runtime"

	"github.com/minibench/mini/env"
)

// Uname returns an Info with the fields of uname(2) that the Go runtime knows.
func Uname() env.Info {
	info := env.Info{System: runtime.GOOS, Machine: runtime.GOARCH}
	info.Node, _ = os.Hostname() // empty if unknown
	return info
}
