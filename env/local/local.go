package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
)

// DefaultTimeout bounds commands for which neither they nor Config say
// anything.
const DefaultTimeout = time.Minute

// closing bounds Close.
const closing = 5 * time.Second

// Config says how commands run on the host. The zero value runs them with bash
// in the current directory.
type Config struct {
	// Dir is where commands start; empty means the current directory. It
	// must exist.
	Dir string
	// Env is added to the host's variables, of which those that look like
	// secrets are left out (see Secret), and wins over them.
	Env map[string]string
	// Timeout bounds a command that names none; zero means DefaultTimeout.
	Timeout time.Duration
	// Interpreter is the shell and its flags; empty means bash -c, or sh
	// where there is no bash.
	Interpreter []string
	// OutputLimit is how many bytes are kept of the output of a command that
	// names no limit; zero means env.DefaultOutputLimit.
	OutputLimit int
}

// Validate reports the first mistake in c that would make New fail.
func (c Config) Validate() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("timeout must not be negative, is %v", c.Timeout)
	case c.OutputLimit < 0 || c.OutputLimit > env.SubmissionLimit:
		return fmt.Errorf("output limit must be between 0 and %d bytes, is %d", env.SubmissionLimit, c.OutputLimit)
	case len(c.Interpreter) > 0 && c.Interpreter[0] == "":
		return errors.New("interpreter has an empty name")
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("environment variable %q cannot be passed on", name)
		}
	}
	return nil
}

// Local is the host as a sandbox.
type Local struct {
	config  Config
	environ []string
	info    env.Info
	runner  *process.Runner
	turn    chan struct{} // holds a token while a command runs

	mu     sync.Mutex
	closed bool
	cancel context.CancelCauseFunc // ends the running command; nil between commands
}

var _ env.Environment = (*Local)(nil)

// New prepares the host. While any Local is open in a program, the program
// must not start processes in sessions of their own (see process.NewShared).
func New(ctx context.Context, c Config) (*Local, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("open local environment: %w", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open local environment: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &env.Error{
			Status: env.StartFailed,
			Op:     "open local environment",
			Hint:   "name a directory that exists",
			Err:    fmt.Errorf("working directory %s is not there", dir),
		}
	}
	c.Dir = dir
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	runner, err := process.NewShared()
	if err != nil {
		return nil, &env.Error{Status: env.StartFailed, Op: "open local environment", Err: err}
	}
	info := process.System()
	info.Dir = dir
	info.Network = true
	l := &Local{
		config:  c,
		environ: process.Merge(withoutSecrets(os.Environ()), c.Env),
		info:    info,
		runner:  runner,
		turn:    make(chan struct{}, 1),
	}
	if tag := runner.Tag(); tag != "" {
		l.environ = append(l.environ, tag)
	}
	return l, nil
}

// Info describes the host.
func (l *Local) Info() env.Info { return l.info }

// Execute runs one command on the host, after the one that runs now.
func (l *Local) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	res := env.Result{ExitCode: -1, OOMKilled: -1}
	err := l.inTurn(ctx, func(ctx context.Context) (err error) {
		var out bytes.Buffer
		res, err = l.runner.Run(ctx, l.command(c), &out)
		res.Output = out.Bytes()
		return err
	})
	return res, err
}

// inTurn waits for what runs now and then does work, which Close can cancel.
func (l *Local) inTurn(ctx context.Context, work func(context.Context) error) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !l.begin(cancel) {
		return env.ErrClosed
	}
	defer l.begin(nil)
	return work(ctx)
}

// begin notes how to end the command that is about to run, nil when none is.
// It is false once the environment is closed.
func (l *Local) begin(cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	return !l.closed
}

func (l *Local) command(c env.Command) process.Command {
	shell := l.config.Interpreter
	if len(c.Interpreter) > 0 {
		shell = c.Interpreter
	}
	p := process.Command{
		Shell:       shell,
		Script:      c.Script,
		Dir:         l.config.Dir,
		Env:         process.Merge(l.environ, c.Env),
		Timeout:     c.Timeout,
		OutputLimit: c.OutputLimit,
		Markers:     c.Markers,
	}
	if c.Dir != "" {
		p.Dir = l.path(c.Dir)
	}
	if p.Timeout <= 0 {
		p.Timeout = l.config.Timeout
	}
	if p.OutputLimit == 0 {
		p.OutputLimit = l.config.OutputLimit
	}
	return p
}

// Close ends the running command, which returns env.ErrClosed, and kills what
// earlier ones left running. It waits for both, some seconds at most, even when
// ctx has ended: what is left running would have no owner.
func (l *Local) Close(ctx context.Context) error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	if l.cancel != nil {
		l.cancel(env.ErrClosed)
	}
	l.mu.Unlock()
	if again {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer stop()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
	}
	if err := l.runner.Close(ctx); err != nil {
		return fmt.Errorf("close local environment: %w", err)
	}
	return nil
}
