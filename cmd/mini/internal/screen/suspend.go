package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopGroup stops the process group, as Ctrl-Z does where the terminal makes a
// signal of it. It returns when the group goes on.
func stopGroup() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, unix.SIGCONT)
	defer signal.Stop(resumed)
	_ = unix.Kill(0, syscall.SIGTSTP)
	// Where no shell could resume it, the kernel does not stop the group, and
	// no signal comes.
	select {
	case <-resumed:
	case <-time.After(lookEvery):
	}
}

// Foreground says whether this process may use the terminal: a background job
// that did would be stopped.
func Foreground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
