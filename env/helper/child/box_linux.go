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

// Box is a helper that is up, as the greater part of an env.Environment.
type Box struct {
	config Config
	proc   *child
	client *helper.Client
	info   env.Info // for those who are asked by a command

	mu   sync.Mutex
	fate error // why it was lost, once it is

	ending sync.Once
	failed error // what ending it came to
	closed atomic.Bool
}

// Hello returns what the helper said of itself and where it runs.
func (b *Box) Hello() helper.Hello { return b.client.Hello() }

// PID is the process that was started: the helper, or the wrapper around it.
func (b *Box) PID() int { return b.proc.cmd.Process.Pid }

// Execute runs one command; see env.Environment. When the helper is lost the
// error is an *env.Error, everything it ran is killed, and every later call
// returns the same error.
func (b *Box) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	if why := b.unequipped(cmd); why != "" {
		return env.Result{ExitCode: -1, OOMKilled: -1, Failure: why}, nil
	}
	cmd.Tools = helper.Inside(cmd.Tools, b.info, b.within)
	return b.judged(ctx, func() (env.Result, error) { return b.client.Execute(ctx, cmd) })
}

// within is Execute inside of a command that asks.
func (b *Box) within(ctx context.Context, inside env.Environment, cmd env.Command) (env.Result, error) {
	return b.judged(ctx, func() (env.Result, error) { return inside.Execute(ctx, cmd) })
}

// judged says of what a command came to what it means.
func (b *Box) judged(ctx context.Context, execute func() (env.Result, error)) (env.Result, error) {
	alone := b.proc.ward.Alone()
	res, err := execute()
	if !alone || !b.proc.ward.Alone() {
		res.OOMKilled = -1 // the kernel's count is of all sandboxes together
	}
	if err != nil && b.client.Err() == nil { // ctx ended; the sandbox is well
		return res, fmt.Errorf("execute command: %w", err)
	}
	return res, b.client.Outcome(ctx, err, b.lost)
}

// unequipped says in a sentence why a command would not find mini-tool; empty
// where it does, or does not need it.
func (b *Box) unequipped(cmd env.Command) string {
	if cmd.Tools == nil || b.config.Setup.ToolDir == "" {
		return ""
	}
	if err := b.config.Program.tool.place(); err != nil {
		return fmt.Sprintf("The tools that it may ask for cannot be made ready: %v.", err)
	}
	return ""
}

// diedWithin is how long after the end of its stream a dying process may take.
const diedWithin = 2 * time.Second

// lost finds out, once, why the helper was lost, and ends what is left.
func (b *Box) lost(why error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fate != nil {
		return b.fate
	}
	e := &env.Error{Status: env.ContainerDied, Op: "execute command in " + b.config.Name, Err: why}
	switch {
	case errors.Is(why, helper.ErrFrame):
		e.Status = env.ProtocolViolation
		e.Hint = "something may be writing in the helper's name; its results are not to be trusted"
	case errors.Is(why, helper.ErrSilent):
		e.Hint = "a command stopped the helper, or the machine is overloaded or was paused"
	default:
		if b.proc.gone(diedWithin) {
			e.Err = fmt.Errorf("%w: %s", why, b.proc.fate())
			e.Hint = "a command may have killed it, or the machine ran out of memory"
		}
	}
	if text := strings.TrimSpace(b.proc.words()); text != "" {
		e.Err = fmt.Errorf("%w: %s", e.Err, text)
	}
	b.fate = e
	_ = b.end() // Close tells
	return b.fate
}

// Close ends the helper, which kills everything it runs first. A command under
// way returns env.ErrClosed. It returns when all is gone, also when ctx has
// ended; some seconds bound it. A second call waits for the first and returns
// nil.
func (b *Box) Close(context.Context) error {
	_ = b.client.Close() // never fails
	err := b.end()
	if b.closed.Swap(true) || err == nil {
		return nil
	}
	return fmt.Errorf("close %s: %w", b.config.Name, err)
}

// end ends the process, once.
func (b *Box) end() error {
	b.ending.Do(func() { b.failed = b.proc.end() })
	return b.failed
}
