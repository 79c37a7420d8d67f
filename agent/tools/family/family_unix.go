//go:build unix

package family

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// tagVariable is in the environment of a program and of what it starts, by which
// that is found when it has left the program's process group.
const tagVariable = "MINI_TOOL_CALL"

// Family is a program, and all that it started.
type Family struct {
	cmd *exec.Cmd
	tag string
}

// New prepares a program that has not been started: cmd gets environ, with the
// tag, and its own process group.
func New(cmd *exec.Cmd, environ []string) *Family {
	f := &Family{cmd, tagVariable + "=" + rand.Text()}
	cmd.Env = append(slices.Clone(environ), f.tag)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return f
}

// Kill ends all of it. It fits exec.Cmd.Cancel.
func (f *Family) Kill() error {
	err := f.End()
	sweep(f.tag)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// End ends those in the group: what a program that is over has left there.
func (f *Family) End() error { return syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL) }
