//go:build unix

package host

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

// family is a program, and all that it started: its process group, which stays in
// mini's own session (see env/process.NewShared), and whoever carries its tag.
// What has left the one and thrown away the other is not found.
type family struct {
	cmd *exec.Cmd
	tag string
}

func newFamily(cmd *exec.Cmd, environ []string) *family {
	f := &family{cmd, tagVariable + "=" + rand.Text()}
	cmd.Env = append(slices.Clone(environ), f.tag)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return f
}

// kill ends all of it.
func (f *family) kill() error {
	err := f.end()
	sweep(f.tag)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// end ends those in the group.
func (f *family) end() error { return syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL) }
