//go:build unix

package system

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/minibench/mini/env/docker"
)

// terminalSizes returns a channel that receives the size of a terminal at the start
// and after each change. stop ends the updates.
func terminalSizes(f *os.File) (_ <-chan docker.Size, stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	sizes, stopped, done := make(chan docker.Size), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			width, height, err := term.GetSize(int(f.Fd()))
			if err == nil && width > 0 && height > 0 {
				select {
				case sizes <- docker.Size{Width: uint(width), Height: uint(height)}:
				case <-stopped:
					return
				}
			}
			select {
			case <-changed:
			case <-stopped:
				return
			}
		}
	}()
	return sizes, func() {
		signal.Stop(changed)
		close(stopped)
		<-done
	}
}
