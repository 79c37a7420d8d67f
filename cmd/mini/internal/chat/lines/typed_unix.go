//go:build unix

package lines

import (
	"os"
	"os/signal"
	"time"

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

// suspend stops the group of this process, as the terminal does at Ctrl-Z, and
// returns when it goes on.
func suspend() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, unix.SIGCONT)
	defer signal.Stop(resumed)
	_ = unix.Kill(0, unix.SIGTSTP)
	// Where no shell could resume it, the kernel does not stop the group, and no
	// signal comes.
	select {
	case <-resumed:
	case <-time.After(soon):
	}
}

const soon = 100 * time.Millisecond
