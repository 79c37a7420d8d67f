//go:build linux || darwin

package procgroup

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// tagVariable is the environment variable that marks a program and its
// descendants.
const tagVariable = "MINI_TOOL_CALL"

// Group is a program and all processes that it started.
type Group struct {
	cmd *exec.Cmd
	tag string

	mu     sync.Mutex
	reaped bool // from then on the program's pid may belong to another process
}

// New prepares cmd, which must not have been started: it sets the environment
// to environ and the tag, and requests a new process group.
func New(cmd *exec.Cmd, environ []string) *Group {
	g := &Group{cmd: cmd, tag: tagVariable + "=" + rand.Text()}
	cmd.Env = append(slices.Clone(environ), g.tag)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return g
}

// Run starts the program and waits for it.
func (g *Group) Run() error {
	if err := g.Start(); err != nil {
		return err
	}
	return g.Wait()
}

// Start starts the program; use it instead of exec.Cmd.Start.
func (g *Group) Start() error { return g.cmd.Start() }

// Wait waits for the program to exit, kills the remaining processes of its
// group, and reaps the program; use it instead of exec.Cmd.Wait.
func (g *Group) Wait() error {
	g.waitForExit()
	g.mu.Lock()
	_ = killGroup(g.cmd.Process.Pid) // usually no process is left
	g.reaped = true
	g.mu.Unlock()
	return g.cmd.Wait()
}

// waitForExit returns when the program has exited. It does not reap the
// program, so that the number of its process group stays reserved.
func (g *Group) waitForExit() {
	const idTypePID = 1 // P_PID
	var info [16]uint64 // siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idTypePID, uintptr(g.cmd.Process.Pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0) //nolint:gosec // waitid needs the address of its result
		if errno != syscall.EINTR {
			return
		}
	}
}

// Kill kills the program and its descendants. It can be used as
// exec.Cmd.Cancel.
func (g *Group) Kill() error {
	g.mu.Lock()
	err := error(syscall.ESRCH)
	if !g.reaped {
		err = killGroup(g.cmd.Process.Pid)
	}
	g.mu.Unlock()
	killTaggedProcesses(g.tag)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// killGroup kills a process group. It must be called before the leader is
// reaped: afterwards the number may belong to another group.
var killGroup = func(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
