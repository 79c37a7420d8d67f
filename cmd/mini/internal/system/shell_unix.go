//go:build unix

package system

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/minibench/mini/env/docker"
)

// terminalSizes tells the size of a terminal, now and whenever it changes.
func terminalSizes(f *os.File) (<-chan docker.Size, func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	sizes, stop, done := make(chan docker.Size), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			width, height, err := term.GetSize(int(f.Fd()))
			if err == nil && width > 0 && height > 0 {
				select {
				case sizes <- docker.Size{Width: uint(width), Height: uint(height)}:
				case <-stop:
					return
				}
			}
			select {
			case <-changed:
			case <-stop:
				return
			}
		}
	}()
	return sizes, func() {
		signal.Stop(changed)
		close(stop)
		<-done
	}
}
