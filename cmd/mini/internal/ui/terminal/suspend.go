package terminal

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// suspendGroup stops the process group, as Ctrl-Z does in a terminal's default mode. It returns
// when the group continues.
func suspendGroup() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, unix.SIGCONT)
	defer signal.Stop(resumed)
	_ = unix.Kill(0, syscall.SIGTSTP)
	// The kernel does not stop an orphaned process group, so no SIGCONT follows.
	select {
	case <-resumed:
	case <-time.After(foregroundInterval):
	}
}

// IsForeground reports whether this process is in the terminal's foreground process group. The
// kernel stops background processes that use the terminal.
func IsForeground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
