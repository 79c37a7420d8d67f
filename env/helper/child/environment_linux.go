package child

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// Environment is a running helper. It has the methods of env.Environment except Info.
type Environment struct {
	config Config
	proc   *childProcess
	client *helper.Client
	info   env.Info // of nested environments

	mu      sync.Mutex
	lostErr error // why the helper was lost, if it was

	stopOnce sync.Once
	stopErr  error
	closed   atomic.Bool
}

// Hello returns the helper's description of itself and its sandbox.
func (b *Environment) Hello() helper.Hello { return b.client.Hello() }

// PID returns the id of the started process: the helper or its wrapper.
func (b *Environment) PID() int { return b.proc.cmd.Process.Pid }

// Execute runs one command (see env.Environment). If the helper is lost the error is
// an *env.Error, all its processes are killed, and all later calls return the same
// error.
func (b *Environment) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	if failure := b.installTool(cmd); failure != "" {
		return env.Result{ExitCode: -1, OOMKilled: -1, Failure: failure}, nil
	}
	cmd.Tools = helper.WrapTools(cmd.Tools, b.info, b.executeNested)
	return b.run(ctx, func() (env.Result, error) { return b.client.Execute(ctx, cmd) })
}

// executeNested is Execute for nested commands.
func (b *Environment) executeNested(ctx context.Context, nested env.Environment, cmd env.Command) (env.Result, error) {
	return b.run(ctx, func() (env.Result, error) { return nested.Execute(ctx, cmd) })
}

// run calls execute and maps its error to an env.Error.
func (b *Environment) run(ctx context.Context, execute func() (env.Result, error)) (env.Result, error) {
	only := b.proc.child.IsOnly()
	res, err := execute()
	if !only || !b.proc.child.IsOnly() {
		res.OOMKilled = -1 // the kernel's counter includes other sandboxes
	}
	if err != nil && b.client.Err() == nil { // ctx ended; the sandbox is still usable
		return res, fmt.Errorf("execute command: %w", err)
	}
	return res, b.client.MapError(ctx, err, b.lost)
}

// installTool makes mini-tool available if the command may call it. If that fails it
// returns a sentence that says why.
func (b *Environment) installTool(cmd env.Command) string {
	if cmd.Tools == nil || b.config.Setup.ToolDir == "" {
		return ""
	}
	if err := b.config.Program.tool.install(); err != nil {
		return fmt.Sprintf("The tools that it may ask for cannot be made ready: %v.", err)
	}
	return ""
}

// exitWait is how long the process may take to exit after its stream has ended.
const exitWait = 2 * time.Second

// lost finds out why the helper was lost, once, and stops its processes.
func (b *Environment) lost(reason error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lostErr != nil {
		return b.lostErr
	}
	e := &env.Error{Status: env.ContainerDied, Op: "execute command in " + b.config.Name, Err: reason}
	switch {
	case errors.Is(reason, helper.ErrFrame):
		e.Status = env.ProtocolViolation
		e.Hint = "a process may be forging the helper's output; do not trust the results"
	case errors.Is(reason, helper.ErrNoResponse):
		e.Hint = "a command stopped the helper, or the machine is overloaded or was paused"
	default:
		if b.proc.waitExit(exitWait) {
			e.Err = fmt.Errorf("%w: %s", reason, b.proc.exitStatus())
			e.Hint = "a command may have killed it, or the machine ran out of memory"
		}
	}
	if text := strings.TrimSpace(b.proc.stderr.String()); text != "" {
		e.Err = fmt.Errorf("%w: %s", e.Err, text)
	}
	b.lostErr = e
	_ = b.stop() // Close returns the error
	return b.lostErr
}

// Close stops the helper, which kills all its processes first. A running command
// returns env.ErrClosed. Close waits until all processes are gone, for some seconds at
// most, even if ctx has ended. A second call waits for the first and returns nil.
func (b *Environment) Close(context.Context) error {
	_ = b.client.Close() // never fails
	err := b.stop()
	if b.closed.Swap(true) || err == nil {
		return nil
	}
	return fmt.Errorf("close %s: %w", b.config.Name, err)
}

// stop stops the process, once.
func (b *Environment) stop() error {
	b.stopOnce.Do(func() { b.stopErr = b.proc.stop() })
	return b.stopErr
}
