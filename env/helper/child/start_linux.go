package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/process"
)

// ProgramPath is the path of the helper's file for the command line of a Wrapper: an
// open file of the process that executes the helper.
var ProgramPath = "/proc/self/fd/" + strconv.Itoa(programFD)

// programFD is the descriptor of the helper's file, the first after the standard
// three. The helper does not pass it to commands.
const programFD = 3

// Start starts a helper and connects to it. The error is a *StartError, or the cause
// of ctx if that ended; no process is left then.
func Start(ctx context.Context, c Config) (*Environment, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, err := launch(c)
	if err != nil {
		return nil, &StartError{Err: err}
	}
	client, err := p.dial(ctx, helper.ClientConfig{Setup: c.Setup, Hash: c.Program.hash, Timeout: c.Timeout})
	if err == nil {
		e := &Environment{config: c, proc: p, client: client}
		if c.Info != nil {
			e.info = c.Info(client.Hello())
		}
		return e, nil
	}
	err = errors.Join(err, p.stop())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &StartError{Output: p.stderr.String(), Err: fmt.Errorf("%w (%s)", err, p.exitStatus())}
}

// errExited is the cause when the process exits during the handshake.
var errExited = errors.New("process has exited")

// dial connects to the helper. It also waits for the exit of the child: the stream may
// stay open then, because a process that the child started holds the other end.
func (p *childProcess) dial(ctx context.Context, c helper.ClientConfig) (*helper.Client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // returns when dial returns
		select {
		case <-p.exited:
			cancel(errExited)
		case <-ctx.Done():
		}
	}()
	return helper.Dial(ctx, p.stream, c)
}

// childProcess is a started helper or its wrapper.
type childProcess struct {
	cmd    *exec.Cmd
	stream *stream
	stderr *helper.StderrBuffer
	child  *process.Child
	exited chan struct{} // closed when the process has exited and was waited for
}

func launch(c Config) (_ *childProcess, err error) {
	argv := c.Wrapper
	if len(argv) == 0 {
		argv = []string{ProgramPath}
	}
	in, toHelper, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // the child has its own descriptor
	fromHelper, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, toHelper.Close())
	}
	defer out.Close() //nolint:errcheck // likewise
	p := &childProcess{
		stream: &stream{r: fromHelper, w: toHelper},
		stderr: &helper.StderrBuffer{},
		exited: make(chan struct{}),
	}
	// No context: the process runs until Close, or until this program exits.
	p.cmd = exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // running the wrapper is the purpose
	if len(c.Wrapper) == 0 {
		p.cmd.Args = []string{"mini-helper", helper.ProgramArg}
		if c.NoTrace {
			p.cmd.Args = append(p.cmd.Args, helper.NoTraceArg)
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, p.stderr
	p.cmd.ExtraFiles = []*os.File{c.Program.file}
	p.cmd.Env = c.Env
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would mean the environment of this process
	}
	p.cmd.WaitDelay = time.Second // for stderr, which another process may hold
	// Its own process group: a signal to the group of this program, from a terminal or
	// timeout(1), must not reach it. It stays in the session of this program, see
	// process.Child.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.child, err = process.StartChild(func() (int, error) {
		if err := p.start(); err != nil {
			return 0, err
		}
		return p.cmd.Process.Pid, nil
	})
	if err != nil {
		return nil, errors.Join(err, p.stream.Close())
	}
	return p, nil
}

// start starts the child, and a goroutine that waits for its exit. The goroutine's
// thread is the child's parent with respect to PR_SET_PDEATHSIG, which bubblewrap uses,
// so the thread must live as long as the child.
func (p *childProcess) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // see ProcessState
			close(p.exited)
		}
	}()
	return <-started
}

// exitTimeout is how long the helper may take to kill its processes and exit after the
// end of its input; killTimeout is how long the kernel may take after SIGKILL.
const (
	exitTimeout = 8 * time.Second
	killTimeout = 3 * time.Second
)

// stop closes the child's input, kills the child if it does not exit in time, and waits
// until the child and its descendants are gone. It returns an error if some cannot be
// killed.
func (p *childProcess) stop() error {
	_ = p.stream.Close()                      // may be closed already
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a command may have stopped it
	if !p.waitExit(exitTimeout) {
		_ = p.cmd.Process.Kill() // it may have just exited
		if !p.waitExit(killTimeout) {
			return fmt.Errorf("process %d cannot be killed", p.cmd.Process.Pid)
		}
	}
	if n := p.child.Close(p.cmd.ProcessState.Success()); n > 0 {
		return fmt.Errorf("%d processes cannot be killed", n)
	}
	return nil
}

func (p *childProcess) waitExit(timeout time.Duration) bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// exitStatus describes how the child exited, if it has.
func (p *childProcess) exitStatus() string {
	if !p.waitExit(0) {
		return "its process is running"
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("its process was killed by signal %d, %s", ws.Signal(), ws.Signal())
	}
	return fmt.Sprintf("its process ended with status %d", p.cmd.ProcessState.ExitCode())
}

// stream joins the two pipes to one stream.
type stream struct{ r, w *os.File }

var _ io.ReadWriteCloser = (*stream)(nil)

func (s *stream) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s *stream) Write(b []byte) (int, error) { return s.w.Write(b) }

// Close closes both directions.
func (s *stream) Close() error { return errors.Join(s.w.Close(), s.r.Close()) }
