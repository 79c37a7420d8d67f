//go:build !unix

package cli

import (
	"os"

	"golang.org/x/term"

	"github.com/minibench/mini/env/docker"
)

// terminalSizes tells the size of a terminal as it is now; nothing here says
// when it changes.
func terminalSizes(f *os.File) (<-chan docker.Size, func()) {
	sizes := make(chan docker.Size, 1)
	if width, height, err := term.GetSize(int(f.Fd())); err == nil {
		sizes <- docker.Size{Width: uint(width), Height: uint(height)}
	}
	return sizes, func() {}
}
