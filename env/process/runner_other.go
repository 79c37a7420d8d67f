//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/minibench/mini/env"
)

// Runner runs commands in process groups. It is a stand-in for systems other
// than Linux: what leaves the group escapes a timeout, background processes
// are neither reported nor protected from SIGPIPE, and a script must fit into
// one argument.
type Runner struct {
	mu     sync.Mutex
	closed bool
	groups []*exec.Cmd // every command so far: its group may still have members
}

// NewOwner is not available here: the helper runs on Linux only.
func NewOwner() (*Runner, error) {
	return nil, fmt.Errorf("own all processes: %w", errors.ErrUnsupported)
}

// NewShared returns a Runner that lives beside others.
func NewShared() (*Runner, error) { return &Runner{}, nil }

// Tag is empty: processes are known by their group.
func (r *Runner) Tag() string { return "" }

// Run runs one command as Runner does on Linux, within the limits above.
func (r *Runner) Run(ctx context.Context, c Command, out io.Writer) (env.Result, error) {
	if ctx.Err() != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, context.Cause(ctx)
	}
	if why := c.obstacle(); why != "" {
		return failure(why), nil
	}
	environ := c.environ()
	shell, ok := FindShell(c.Shell, environ)
	if !ok {
		return failure("There is no shell to run the command with."), nil
	}
	bounded := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	collected := newOutput(out, c.OutputLimit, c.Markers)
	cmd := exec.CommandContext(bounded, shell[0], append(shell[1:], c.Script)...) //nolint:gosec // running commands is the purpose
	cmd.Dir, cmd.Env = c.Dir, environ
	sink := sink{collected}
	cmd.Stdout, cmd.Stderr = sink, sink
	cmd.WaitDelay = 20 * time.Millisecond
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return failure(fmt.Sprintf("The command cannot be started: %v.", reason(err))), nil
	}
	r.mu.Lock()
	r.groups = append(r.groups, cmd)
	r.mu.Unlock()
	_ = cmd.Wait() // the state below says the same
	res := env.Result{Duration: time.Since(began), OOMKilled: -1}
	collected.finish(&res)
	switch {
	case ctx.Err() != nil:
		res.ExitCode, res.Killed = -1, 1
		return res, context.Cause(ctx)
	case bounded.Err() != nil:
		res.ExitCode, res.TimedOut, res.Killed = -1, true, 1
	default:
		res.ExitCode, res.Signal = exitState(cmd.ProcessState)
	}
	return res, nil
}

// sink makes an output a writer.
type sink struct{ out *output }

func (s sink) Write(p []byte) (int, error) {
	s.out.add(p)
	return len(p), nil
}

// Close kills the groups of all commands. A second call returns nil.
func (r *Runner) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	for _, cmd := range r.groups {
		_ = killGroup(cmd) // most have ended long ago
	}
	return nil
}
