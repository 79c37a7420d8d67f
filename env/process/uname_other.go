//go:build !linux

package process

import (
	"os"
	"runtime"

	"github.com/minibench/mini/env"
)

// System says what the Go runtime knows of uname's fields.
func System() env.Info {
	info := env.Info{System: runtime.GOOS, Machine: runtime.GOARCH}
	info.Node, _ = os.Hostname() // unknown stays empty
	return info
}
