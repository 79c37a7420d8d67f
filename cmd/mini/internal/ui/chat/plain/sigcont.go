package plain

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// onContinue calls callback each time the process continues after Ctrl-Z, until the returned
// function is called.
func onContinue(callback func()) func() {
	signals, stop, stopped := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, unix.SIGCONT)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-signals:
				callback()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(stop)
		<-stopped
	}
}
