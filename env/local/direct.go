package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
)

// outputWait is how long output is awaited that a background process may still
// write.
const outputWait = 20 * time.Millisecond

// direct runs commands as children of this program, each in a process group. It
// is for programs that were built without the helper: what leaves its group is
// not killed, background processes are not listed, and no command can ask for
// tools.
type direct struct {
	config  Config
	environ []string
	turn    chan struct{}   // of capacity one: who has put a token in may run
	life    context.Context //nolint:containedctx // of all commands
	close   context.CancelCauseFunc
	groups  []int // of every command so far; guarded by turn
}

func newDirect(c Config) *direct {
	d := &direct{config: c, environ: c.environ(), turn: make(chan struct{}, 1)}
	d.life, d.close = context.WithCancelCause(context.Background())
	return d
}

// begin waits for what runs now, and for nothing once the environment is closed.
// The context ends with it.
func (d *direct) begin(ctx context.Context) (_ context.Context, cancel context.CancelCauseFunc, end func(), err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, context.Cause(ctx)
	}
	if d.life.Err() != nil {
		<-d.turn
		return nil, nil, nil, env.ErrClosed
	}
	ctx, cancel = context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.life, func() { cancel(env.ErrClosed) })
	return ctx, cancel, func() {
		stop()
		cancel(nil)
		<-d.turn
	}, nil
}

// Execute runs one command, after the one that runs now.
func (d *direct) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	failed := env.Result{ExitCode: -1, OOMKilled: -1}
	ctx, cancel, end, err := d.begin(ctx)
	if err != nil {
		return failed, err
	}
	defer end()
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = d.config.Timeout
	}
	bounded, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	cmd, ok := d.command(bounded, c)
	if !ok {
		failed.Failure = "There is no shell to run the command with."
		return failed, nil
	}
	var out bytes.Buffer
	to := &destination{w: &out, show: c.Watch, fail: cancel}
	if c.Sink != nil {
		to.w = c.Sink
	}
	collected := process.NewOutput(to, c.OutputLimit, c.Markers)
	cmd.Stdout, cmd.Stderr = collected, collected
	began := time.Now()
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return failed, context.Cause(ctx)
		}
		failed.Failure = fmt.Sprintf("The command cannot be started: %v.", err)
		return failed, nil
	}
	d.groups = append(d.groups, cmd.Process.Pid)
	_ = cmd.Wait() // the state below says the same
	res := env.Result{Duration: time.Since(began), OOMKilled: -1}
	collected.Finish(&res)
	res.Output = out.Bytes()
	switch {
	case ctx.Err() != nil:
		res.ExitCode, res.Killed = -1, 1
		return res, context.Cause(ctx)
	case bounded.Err() != nil:
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

// command is what is to be started; false where there is no shell for it.
func (d *direct) command(ctx context.Context, c env.Command) (*exec.Cmd, bool) {
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
	environ := process.Merge(process.Merge(d.environ, c.Env), map[string]string{"PWD": dir})
	shell, ok := process.FindShell(shell, environ)
	if !ok {
		return nil, false
	}
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], c.Script)...) //nolint:gosec // running commands is the purpose
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ, outputWait
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, true
}

// destination passes output on. A sink that fails ends the command.
type destination struct {
	w    io.Writer
	show func([]byte) // may be nil
	fail context.CancelCauseFunc
}

func (d *destination) Write(p []byte) (int, error) {
	if d.show != nil {
		d.show(p)
	}
	n, err := d.w.Write(p)
	if err != nil {
		d.fail(errors.Join(env.ErrSink, err))
	}
	return n, err
}

// Close ends the running command and kills the groups of all earlier ones.
func (d *direct) Close(context.Context) error {
	d.close(env.ErrClosed)
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	for _, group := range d.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // most have ended long ago
	}
	d.groups = nil
	return nil
}
