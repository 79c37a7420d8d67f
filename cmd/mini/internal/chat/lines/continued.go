package lines

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// whenContinued does something each time that the process goes on after Ctrl-Z.
// The returned function ends that.
func whenContinued(do func()) func() {
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
