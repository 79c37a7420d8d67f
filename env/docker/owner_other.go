//go:build !linux

package docker

import (
	"errors"
	"os"
	"syscall"
)

// Boot and PID namespace are not asked for here: a container of an earlier boot
// then looks alive when its owner's id is in use again, and is left alone.
func bootID() string { return "" }

func pidSpace() string { return "" }

func processStart(pid int) (start string, running bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return "", false
	}
	defer p.Release() //nolint:errcheck // nothing depends on it
	// Any other error, as where there are no signals, means that it is there.
	return "", !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
