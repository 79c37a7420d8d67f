package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
)

// outputWait is how long to wait for output after a command has ended, if a background
// process holds the pipe.
const outputWait = 20 * time.Millisecond

// directRunner runs commands as children of this program, each in its own process
// group. It is for programs built without the helper: processes that leave the group
// are not killed, background processes are not listed, and commands cannot call tools.
type directRunner struct {
	config  Config
	environ []string
	sem     chan struct{}   // semaphore of capacity 1
	ctx     context.Context //nolint:containedctx // the parent of all commands, cancelled by Close
	cancel  context.CancelCauseFunc
	groups  []int // process groups of all commands so far; guarded by sem
}

func newDirectRunner(c Config) *directRunner {
	d := &directRunner{config: c, environ: c.environ(), sem: make(chan struct{}, 1)}
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	return d
}

// acquire waits for the semaphore. The returned context ends when ctx ends or the
// environment is closed; release ends it and releases the semaphore.
func (d *directRunner) acquire(ctx context.Context) (_ context.Context, cancel context.CancelCauseFunc, release func(), err error) {
	select {
	case d.sem <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, context.Cause(ctx)
	}
	if d.ctx.Err() != nil {
		<-d.sem
		return nil, nil, nil, env.ErrClosed
	}
	ctx, cancel = context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.ctx, func() { cancel(env.ErrClosed) })
	return ctx, cancel, func() {
		stop()
		cancel(nil)
		<-d.sem
	}, nil
}

// Execute runs one command. It waits until no other goroutine uses the runner.
func (d *directRunner) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	notRun := env.Result{ExitCode: -1, OOMKilled: -1}
	ctx, cancel, release, err := d.acquire(ctx)
	if err != nil {
		return notRun, err
	}
	defer release()
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = d.config.Timeout
	}
	timeoutCtx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	cmd, ok := d.command(timeoutCtx, c)
	if !ok {
		notRun.Failure = "There is no shell to run the command with."
		return notRun, nil
	}
	var out bytes.Buffer
	dest := &destination{w: &out, onOutput: c.OnOutput, fail: cancel}
	if c.Sink != nil {
		dest.w = c.Sink
	}
	output := process.NewOutput(dest, c.Script, c.OutputLimit, c.SubmissionMarkers)
	var pipes []*outputPipe
	for _, w := range output.Writers() {
		p, err := newOutputPipe(w)
		if err != nil {
			return notRun, fmt.Errorf("execute command: %w", err)
		}
		defer p.r.Close() //nolint:errcheck // nothing was written
		defer p.w.Close() //nolint:errcheck // nothing was written here
		pipes = append(pipes, p)
	}
	cmd.Stdout, cmd.Stderr = pipes[0].w, pipes[len(pipes)-1].w
	started := time.Now()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return notRun, context.Cause(ctx)
		}
		notRun.Failure = fmt.Sprintf("The command cannot be started: %v.", err)
		return notRun, nil
	}
	d.groups = append(d.groups, cmd.Process.Pid)
	for _, p := range pipes {
		_ = p.w.Close() // nothing was written here
		go p.copy()
	}
	_ = cmd.Wait() // see ProcessState below
	for _, p := range pipes {
		p.readRest()
	}
	res := env.Result{Duration: time.Since(started), OOMKilled: -1}
	output.Finish(cmd.ProcessState.Success() && timeoutCtx.Err() == nil, &res)
	res.Output = out.Bytes()
	switch {
	case ctx.Err() != nil:
		res.ExitCode, res.Killed = -1, 1
		return res, context.Cause(ctx)
	case timeoutCtx.Err() != nil:
		res.ExitCode, res.TimedOut, res.Killed = -1, true, 1
	default:
		res.ExitCode = cmd.ProcessState.ExitCode()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			res.Signal = int(ws.Signal())
			res.ExitCode = 128 + res.Signal
		}
	}
	return res, nil
}

// outputPipe carries a stream of a command to out.
type outputPipe struct {
	r, w   *os.File
	out    io.Writer
	copied chan struct{} // closed at the end of copy
}

func newOutputPipe(out io.Writer) (*outputPipe, error) {
	r, w, err := os.Pipe()
	return &outputPipe{r: r, w: w, out: out, copied: make(chan struct{})}, err
}

// copy ends at the end of the stream, or in readRest.
func (p *outputPipe) copy() {
	defer close(p.copied)
	_, _ = io.Copy(p.out, p.r)
}

// readRest returns when out has everything that the command has written before it ended.
// If a background process holds the pipe, copy does not end by itself, and may be late on
// a busy machine.
func (p *outputPipe) readRest() {
	timer := time.NewTimer(outputWait)
	defer timer.Stop()
	select {
	case <-p.copied:
		return
	case <-timer.C:
	}
	_ = p.r.SetReadDeadline(time.Now()) // ends copy, even if it has not read everything
	<-p.copied
	process.Drain(p.r, p.out, make([]byte, 64<<10))
}

// command returns the process to start; false if its shell is not found.
func (d *directRunner) command(ctx context.Context, c env.Command) (*exec.Cmd, bool) {
	shell := d.config.Interpreter
	if len(c.Interpreter) > 0 {
		shell = c.Interpreter
	}
	dir := d.config.Dir
	if c.Dir != "" {
		dir = c.Dir
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(d.config.Dir, dir)
		}
	}
	environ := process.MergeEnv(process.MergeEnv(d.environ, c.Env), map[string]string{"PWD": dir})
	shell, ok := process.FindShell(shell, environ)
	if !ok {
		return nil, false
	}
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], c.Script)...) //nolint:gosec // running commands is the purpose
	cmd.Dir, cmd.Env = dir, environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, true
}

// destination passes output to w, which is Command.Sink or the buffer of Result.Output,
// and to OnOutput. An error of w cancels the command.
type destination struct {
	w        io.Writer
	onOutput func([]byte)            // may be nil
	fail     context.CancelCauseFunc // cancels the command
}

func (d *destination) Write(p []byte) (int, error) {
	if d.onOutput != nil {
		d.onOutput(p)
	}
	n, err := d.w.Write(p)
	if err != nil {
		d.fail(errors.Join(env.ErrSink, err))
	}
	return n, err
}

// Close cancels the running command and kills the process groups of all earlier ones.
func (d *directRunner) Close(context.Context) error {
	d.cancel(env.ErrClosed)
	d.sem <- struct{}{}
	defer func() { <-d.sem }()
	for _, group := range d.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // most have exited
	}
	d.groups = nil
	return nil
}
