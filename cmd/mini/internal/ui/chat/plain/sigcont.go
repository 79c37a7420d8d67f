package plain

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// onContinue calls do each time the process continues after Ctrl-Z, until the returned
// function is called.
func onContinue(do func()) func() {
	signals, done, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, unix.SIGCONT)
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				do()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}
