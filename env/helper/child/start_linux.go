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

// Path is where a started helper's file is, for the command line of a Wrapper:
// an open file of the process that is to become the helper.
var Path = "/proc/self/fd/" + strconv.Itoa(programFD)

// programFD is the first descriptor after the standard three. The helper does
// not pass it on to commands.
const programFD = 3

// Start starts a helper and greets it. The error is a *FailedError, or the
// cause of ctx when that ended; nothing is left behind in either case.
func Start(ctx context.Context, c Config) (*Box, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, err := launch(c)
	if err != nil {
		return nil, &FailedError{Err: err}
	}
	client, err := p.dial(ctx, helper.ClientConfig{Setup: c.Setup, Hash: c.Program.hash, Timeout: c.Timeout})
	if err == nil {
		b := &Box{config: c, proc: p, client: client}
		if c.Info != nil {
			b.info = c.Info(client.Hello())
		}
		return b, nil
	}
	err = errors.Join(err, p.end())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &FailedError{Text: p.words(), Err: fmt.Errorf("%w (%s)", err, p.fate())}
}

// errEnded is the cause of a greeting that nobody is left to answer.
var errEnded = errors.New("it has ended")

// dial greets the helper. The end of the stream alone would not tell that the
// child has died: what it started may hold the other end.
func (p *child) dial(ctx context.Context, c helper.ClientConfig) (*helper.Client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with the greeting
		select {
		case <-p.ended:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return helper.Dial(ctx, p.stream, c)
}

// child is a started helper, or what leads to one.
type child struct {
	cmd    *exec.Cmd
	stream *stream
	stderr *helper.Stderr
	ward   *process.Ward
	ended  chan struct{} // closed once it has been waited for
}

func launch(c Config) (_ *child, err error) {
	argv := c.Wrapper
	if len(argv) == 0 {
		argv = []string{Path}
	}
	in, toHelper, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // the child has its own
	fromHelper, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, toHelper.Close())
	}
	defer out.Close() //nolint:errcheck // likewise
	p := &child{
		stream: &stream{r: fromHelper, w: toHelper},
		stderr: &helper.Stderr{},
		ended:  make(chan struct{}),
	}
	// No context: it ends with Close, or with this program.
	p.cmd = exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // running it is the purpose
	if len(c.Wrapper) == 0 {
		p.cmd.Args[0] = "mini-helper"
		if c.NoTrace {
			p.cmd.Args = append(p.cmd.Args, helper.NoTrace)
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, p.stderr
	p.cmd.ExtraFiles = []*os.File{c.Program.file}
	p.cmd.Env = c.Env
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would mean everything of this process
	}
	p.cmd.WaitDelay = time.Second // for stderr, should somebody hold it
	// A group of its own: what is sent to this program's whole group, by a
	// terminal or by timeout(1), must leave it to do its work. Its session stays
	// the same, see process.Ward.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.ward, err = process.NewWard(func() (int, error) {
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

// start leaves a goroutine that waits for the child's end. The thread is the
// child's parent as far as PR_SET_PDEATHSIG is concerned, which bubblewrap uses,
// so it must live as long.
func (p *child) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the state says it
			close(p.ended)
		}
	}()
	return <-started
}

// How long a helper may take to kill what it runs once its input has ended, and
// how long the kernel may take after a kill.
const (
	goodEnd = 8 * time.Second
	badEnd  = 3 * time.Second
)

// end closes the child's input and waits until it is gone, with everything below
// it.
func (p *child) end() error {
	_ = p.stream.Close()                      // a second time: nothing can be done about it
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a command may have stopped it
	if !p.gone(goodEnd) {
		_ = p.cmd.Process.Kill() // it may have ended just now
		if !p.gone(badEnd) {
			return fmt.Errorf("process %d cannot be killed", p.cmd.Process.Pid)
		}
	}
	if n := p.ward.Close(p.cmd.ProcessState.Success()); n > 0 {
		return fmt.Errorf("%d processes cannot be killed", n)
	}
	return nil
}

func (p *child) gone(within time.Duration) bool {
	select {
	case <-p.ended:
		return true
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// fate is how the child ended, as far as it has.
func (p *child) fate() string {
	if !p.gone(0) {
		return "its process lives"
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("its process was killed by signal %d, %s", ws.Signal(), ws.Signal())
	}
	return fmt.Sprintf("its process ended with status %d", p.cmd.ProcessState.ExitCode())
}

func (p *child) words() string { return p.stderr.String() }

// stream is the two pipes as one.
type stream struct{ r, w *os.File }

var _ io.ReadWriteCloser = (*stream)(nil)

func (s *stream) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s *stream) Write(b []byte) (int, error) { return s.w.Write(b) }

// Close ends both directions.
func (s *stream) Close() error { return errors.Join(s.w.Close(), s.r.Close()) }
