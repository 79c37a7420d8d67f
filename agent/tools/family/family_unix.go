//go:build linux || darwin

package family

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// tagVariable is in the environment of a program and of what it starts, by which
// that is found when it has left the program's process group.
const tagVariable = "MINI_TOOL_CALL"

// Family is a program, and all that it started.
type Family struct {
	cmd     *exec.Cmd
	tag     string
	outputs sync.WaitGroup // those that are copied, until they end

	mu     sync.Mutex
	reaped bool // the program's pid may belong to another process
}

// New prepares a program that has not been started: cmd gets environ, with the
// tag, and its own process group.
func New(cmd *exec.Cmd, environ []string) *Family {
	f := &Family{cmd: cmd, tag: tagVariable + "=" + rand.Text()}
	cmd.Env = append(slices.Clone(environ), f.tag)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return f
}

// Run starts the program and waits for it, as Start and Wait do.
func (f *Family) Run() error {
	if err := f.Start(); err != nil {
		return err
	}
	return f.Wait()
}

// Start starts the program. It takes the place of exec.Cmd.Start.
func (f *Family) Start() error {
	for _, w := range []*io.Writer{&f.cmd.Stdout, &f.cmd.Stderr} {
		if _, file := (*w).(*os.File); *w != nil && !file {
			f.outputs.Add(1)
			*w = output{*w, f.outputs.Done}
		}
	}
	return f.cmd.Start()
}

// output tells when all of an output was copied.
type output struct {
	io.Writer
	done func()
}

// ReadFrom implements io.ReaderFrom, which os/exec copies by.
func (o output) ReadFrom(r io.Reader) (int64, error) {
	defer o.done()
	return io.Copy(struct{ io.Writer }{o.Writer}, r)
}

// Wait waits for the program to end, and for its outputs for at most
// exec.Cmd.WaitDelay more; it returns exec.ErrWaitDelay where they stay open for
// longer. Then it kills what is left in the process group, and reaps the program.
// It takes the place of exec.Cmd.Wait.
func (f *Family) Wait() error {
	f.await()
	late := !f.drained(f.cmd.WaitDelay)
	f.mu.Lock()
	_ = killGroup(f.cmd.Process.Pid) // as a rule the program is alone in it
	f.reaped = true
	f.mu.Unlock()
	err := f.cmd.Wait()
	f.reapGroup()
	if err == nil && late {
		return exec.ErrWaitDelay
	}
	return err
}

// await returns when the program has ended. It leaves it a zombie, so that its pid
// is the name of its process group still.
func (f *Family) await() {
	const byPid = 1
	var info [16]uint64 // siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(f.cmd.Process.Pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0) //nolint:gosec // waitid wants the address of its answer
		if errno != syscall.EINTR {
			return
		}
	}
}

// drained waits until the outputs have ended, for at most d.
func (f *Family) drained(d time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		f.outputs.Wait()
		close(ended)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// Kill ends all of it. It fits exec.Cmd.Cancel.
func (f *Family) Kill() error {
	f.mu.Lock()
	err := error(syscall.ESRCH)
	if !f.reaped {
		err = killGroup(f.cmd.Process.Pid)
	}
	f.mu.Unlock()
	sweep(f.tag)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// killGroup must be called only while the leader of the group is not reaped: after
// that another group may have its number.
var killGroup = func(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }

// Bounds of the wait for those that were killed.
const (
	maxWaits = 50
	eachWait = time.Millisecond
)

// reapGroup waits for those of the group that were killed and are children of
// mini's own, as they are while it is a subreaper (see env/process).
func (f *Family) reapGroup() {
	for range maxWaits {
		pid, err := syscall.Wait4(-f.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // there are none
		case pid == 0:
			time.Sleep(eachWait)
		}
	}
}
