package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/process"
	"github.com/minibench/mini/env/scratch"
)

// DefaultTimeout is the timeout of commands if neither the command nor Config sets
// one.
const DefaultTimeout = time.Minute

// Config configures how commands run on the host. The zero value runs them with bash
// in the current directory.
type Config struct {
	// Dir is the working directory, which must exist; empty means the current
	// directory.
	Dir string
	// Env is added to the variables of the host and overrides them. Variables of the
	// host that look like secrets (see IsSecret) and those of git (GIT_*) are removed
	// first.
	Env map[string]string
	// Hidden names further variables of the host to remove, such as secrets with
	// unusual names. Env may set them again.
	Hidden []string
	// CleanEnv removes all variables of the host except those that child.FilterEnv
	// keeps.
	CleanEnv bool
	// Timeout is the timeout of commands that set none; zero means DefaultTimeout.
	Timeout time.Duration
	// Interpreter is the shell with its flags; empty means bash -c, or sh if bash is
	// missing.
	Interpreter []string
	// Helper runs the commands in a separate process, which kills them when this
	// program exits for any reason. Without it commands are children of this program,
	// with the limitations described in the package comment.
	Helper *child.Program
	// Disposable means that Dir was created for this environment: Close removes Dir.
	Disposable bool
	// Warnings are added to Info.Warnings.
	Warnings []string
}

// Local is an environment that runs commands on the host.
type Local struct {
	config Config
	info   env.Info
	runner commandRunner
}

var _ env.Environment = (*Local)(nil)

// commandRunner is either a directRunner or a child.Environment, which uses a helper.
type commandRunner interface {
	Execute(ctx context.Context, c env.Command) (env.Result, error)
	env.Files
	Close(ctx context.Context) error
}

// New returns an environment on the host. While a Local with a helper is open, the
// program must not start processes in new sessions (see process.Child). If New fails,
// it does not remove a disposable directory.
func New(ctx context.Context, c Config) (*Local, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := child.Validate(c.Timeout, c.Interpreter, c.Env); err != nil {
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
			Hint:   "name an existing directory",
			Err:    fmt.Errorf("working directory %s does not exist", dir),
		}
	}
	c.Dir = dir
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	l := &Local{config: c, info: process.Uname()}
	l.info.Tools = c.Helper != nil
	l.info.Dir, l.info.Network = dir, true
	l.info.Disposable, l.info.Warnings = c.Disposable, c.Warnings
	if err := l.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &env.Error{Status: env.StartFailed, Op: "open local environment", Err: err}
	}
	return l, nil
}

// start creates the runner.
func (l *Local) start(ctx context.Context) error {
	c := l.config
	if c.Helper == nil {
		l.runner = newDirectRunner(c)
		return nil
	}
	e, err := child.Start(ctx, child.Config{
		Name:    "the local environment in " + c.Dir,
		Program: c.Helper,
		NoTrace: true,
		Env:     c.environ(),
		Setup:   helper.Setup{Dir: c.Dir, Interpreter: c.Interpreter, ToolDir: c.Helper.ToolDir()},
		Info:    func(helper.Hello) env.Info { return l.info },
		Timeout: c.Timeout,
	})
	l.runner = e
	return err
}

// environ returns the environment variables of commands.
func (c Config) environ() []string {
	host := withoutGit(WithoutSecrets(os.Environ(), c.Hidden))
	if c.CleanEnv {
		host = child.FilterEnv(host)
	}
	return process.MergeEnv(host, c.Env)
}

// Info describes the host.
func (l *Local) Info() env.Info { return l.info }

// Execute runs one command on the host. It waits for a command of another goroutine.
func (l *Local) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	return l.runner.Execute(ctx, c)
}

// Close cancels the running command, whose Execute then returns env.ErrClosed, kills the
// processes of earlier commands, and removes a disposable directory. It does all this
// even if ctx has ended. With a helper it waits some seconds at most for the processes.
func (l *Local) Close(ctx context.Context) error {
	err := l.runner.Close(ctx)
	if l.config.Disposable {
		err = errors.Join(err, scratch.Remove(l.config.Dir))
	}
	if err != nil {
		return fmt.Errorf("close local environment: %w", err)
	}
	return nil
}
