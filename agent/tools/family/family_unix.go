//go:build unix

package family

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
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
	err := f.killGroup()
	sweep(f.tag)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func (f *Family) killGroup() error { return syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL) }

// Bounds of the wait for those that were killed.
const (
	maxWaits = 50
	eachWait = time.Millisecond
)

// End ends those in the group: what a program that is over has left there. It comes
// after the program was waited for. While mini is a subreaper (see env/process),
// they are its children now, and are waited for too.
func (f *Family) End() {
	_ = f.killGroup() // as a rule there is nobody
	for range maxWaits {
		pid, err := syscall.Wait4(-f.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // nobody is left, or nobody of ours
		case pid == 0:
			time.Sleep(eachWait)
		}
	}
}
