package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
)

// Memory is an environment without processes and files, for tests whose subject is
// not the sandbox: a Go function stands for the shell. Memory keeps the promises of
// env.Environment about output limits, sinks, markers, timeouts, cancellation and order.
// The function decides what a command prints; it may call c.Tools and c.Bridge.
type Memory struct {
	run    Shell
	info   env.Info
	turn   chan struct{} // held by the command that runs
	closed chan struct{}
	once   sync.Once
}

// Shell runs one command: it writes the output of c to out and returns the exit code.
// When ctx ends, at the timeout of c for example, it must return. Its exit code is
// then ignored.
type Shell func(ctx context.Context, c env.Command, out io.Writer) int

// NewMemory returns an environment whose commands are run by a function. Fields of
// info that are empty have plausible values.
func NewMemory(info env.Info, run Shell) *Memory {
	if info.System == "" {
		info.System, info.Node, info.Release, info.Version, info.Machine = "Linux", "sandbox", "6.1.0", "#1", "x86_64"
	}
	if info.Dir == "" {
		info.Dir = "/testbed"
	}
	return &Memory{run: run, info: info, turn: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Outputs returns a Shell that prints the output of a script with exit code 0. A
// script that is not in the map prints a message and has exit code 127.
func Outputs(outputs map[string]string) Shell {
	return func(_ context.Context, c env.Command, out io.Writer) int {
		text, ok := outputs[c.Script]
		if !ok {
			fmt.Fprintf(out, "the test has no output for %q\n", c.Script) //nolint:errcheck // of a Memory: never fails
			return 127
		}
		io.WriteString(out, text) //nolint:errcheck // likewise
		return 0
	}
}

// The causes of the end of a command's context.
var (
	errTimedOut   = errors.New("the command reached its timeout")
	errSinkFailed = errors.New("the sink failed")
)

// Execute implements env.Environment.
func (m *Memory) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	cancelled := env.Result{ExitCode: -1, OOMKilled: -1}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return cancelled, context.Cause(ctx)
	}
	select {
	case <-m.closed:
		return cancelled, fmt.Errorf("execute: %w", env.ErrClosed)
	case <-ctx.Done():
		return cancelled, context.Cause(ctx)
	default:
	}
	if strings.Contains(c.Script, "\x00") || len(c.Script) > env.MaxScript {
		return env.Result{ExitCode: -1, OOMKilled: -1, Failure: "The command has a NUL byte or is too long."}, nil
	}
	return m.execute(ctx, c)
}

func (m *Memory) execute(ctx context.Context, c env.Command) (env.Result, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-m.closed:
			cancel(env.ErrClosed)
		case <-ended:
		}
	}()
	if c.Timeout > 0 {
		timer := time.AfterFunc(c.Timeout, func() { cancel(errTimedOut) })
		defer timer.Stop()
	}
	sink := &memorySink{command: c, fail: func() { cancel(errSinkFailed) }}
	out := process.NewOutputLimiter(sink, c.OutputLimit, c.SubmissionMarkers)
	begin := time.Now()
	code := m.run(within, c, out)
	res := env.Result{ExitCode: code, Duration: max(time.Since(begin), 1), OOMKilled: 0}
	out.Finish(&res)
	res.Output = sink.kept
	cause := context.Cause(within)
	switch {
	case sink.err != nil:
		res.ExitCode = -1
		return res, fmt.Errorf("%w: %w", env.ErrSink, sink.err)
	case errors.Is(cause, errTimedOut):
		res.ExitCode, res.TimedOut, res.Killed = -1, true, 1
	case cause != nil:
		res.ExitCode, res.Killed = -1, 1
		return res, cause
	}
	return res, nil
}

// memorySink passes the kept output on.
type memorySink struct {
	command env.Command
	fail    func()
	kept    []byte
	err     error // of the command's sink
}

func (s *memorySink) Write(p []byte) (int, error) {
	if s.command.OnOutput != nil {
		s.command.OnOutput(p)
	}
	if s.command.Sink == nil {
		s.kept = append(s.kept, p...)
		return len(p), nil
	}
	n, err := s.command.Sink.Write(p)
	if err != nil {
		s.err = err
		s.fail()
	}
	return n, err
}

// Info implements env.Environment.
func (m *Memory) Info() env.Info { return m.info }

// Close implements env.Environment.
func (m *Memory) Close(context.Context) error {
	m.once.Do(func() { close(m.closed) })
	return nil
}
