//go:build unix

package decider

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// alone gives a program a process group of its own; what is returned kills that.
func alone(cmd *exec.Cmd) func() error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
