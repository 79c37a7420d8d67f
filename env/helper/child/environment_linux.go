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
func (e *Environment) Hello() helper.Hello { return e.client.Hello() }

// PID returns the id of the started process: the helper or its wrapper.
func (e *Environment) PID() int { return e.proc.cmd.Process.Pid }

// Execute runs one command (see env.Environment). If the helper is lost, the error
// wraps an *env.Error, all processes of the helper are killed, and the errors of all
// later calls wrap the same *env.Error.
func (e *Environment) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	if failure := e.installTool(cmd); failure != "" {
		return env.Result{ExitCode: -1, OOMKilled: -1, Failure: failure}, nil
	}
	cmd.Tools = helper.WrapTools(cmd.Tools, e.info, e.executeNested)
	return e.run(ctx, func() (env.Result, error) { return e.client.Execute(ctx, cmd) })
}

// executeNested is Execute for nested commands.
func (e *Environment) executeNested(ctx context.Context, nested env.Environment, cmd env.Command) (env.Result, error) {
	return e.run(ctx, func() (env.Result, error) { return nested.Execute(ctx, cmd) })
}

// run calls execute. If the helper is lost, the error wraps an *env.Error.
func (e *Environment) run(ctx context.Context, execute func() (env.Result, error)) (env.Result, error) {
	wasOnly := e.proc.child.IsOnlyOpen()
	res, err := execute()
	if !wasOnly || !e.proc.child.IsOnlyOpen() {
		res.OOMKilled = -1 // the kernel's counter includes other sandboxes
	}
	if err != nil && e.client.Err() == nil { // the sandbox is still usable: ctx ended, or the sink failed
		return res, fmt.Errorf("execute command: %w", err)
	}
	return res, e.client.MapError(ctx, err, e.lost)
}

// installTool makes mini-tool available if the command may call it. If that fails, it
// returns a sentence for Result.Failure; else "".
func (e *Environment) installTool(cmd env.Command) string {
	if cmd.Tools == nil || e.config.Setup.ToolDir == "" {
		return ""
	}
	if err := e.config.Program.tool.install(); err != nil {
		return fmt.Sprintf("The tools that it may ask for cannot be made ready: %v.", err)
	}
	return ""
}

// exitWait is how long the process may take to exit after its stream has ended.
const exitWait = 10 * time.Second

// lost finds out why the helper was lost and kills its processes. Later calls return
// the error of the first.
func (e *Environment) lost(reason error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lostErr != nil {
		return e.lostErr
	}
	failure := &env.Error{Status: env.ContainerDied, Op: "execute command in " + e.config.Name, Err: reason}
	switch {
	case errors.Is(reason, helper.ErrFrame):
		failure.Status = env.ProtocolViolation
		failure.Hint = "a process may be forging the helper's output; do not trust the results"
	case errors.Is(reason, helper.ErrNoResponse):
		failure.Hint = "a command stopped the helper, or the machine is overloaded or was paused"
	default:
		if e.proc.waitExit(exitWait) {
			failure.Err = fmt.Errorf("%w: %s", reason, e.proc.exitStatus())
			failure.Hint = "a command may have killed it, or the machine ran out of memory"
		}
	}
	if text := strings.TrimSpace(e.proc.stderr.String()); text != "" {
		failure.Err = fmt.Errorf("%w: %s", failure.Err, text)
	}
	e.lostErr = failure
	_ = e.stop() // Close returns the error
	return e.lostErr
}

// Close stops the helper, which kills all its processes first. A running command
// returns env.ErrClosed. Close waits until all processes are gone, for some seconds at
// most, even if ctx has ended. A second call waits for the first and returns nil.
func (e *Environment) Close(context.Context) error {
	_ = e.client.Close() // never fails
	err := e.stop()
	if e.closed.Swap(true) || err == nil {
		return nil
	}
	return fmt.Errorf("close %s: %w", e.config.Name, err)
}

// stop stops the process, once.
func (e *Environment) stop() error {
	e.stopOnce.Do(func() { e.stopErr = e.proc.stop() })
	return e.stopErr
}
