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

// DefaultTimeout bounds commands for which neither they nor Config say
// anything.
const DefaultTimeout = time.Minute

// Config says how commands run on the host. The zero value runs them with bash
// in the current directory.
type Config struct {
	// Dir is where commands start; empty means the current directory. It
	// must exist.
	Dir string
	// Env is added to the host's variables, of which those that look like
	// secrets are left out (see Secret) and those of git (GIT_*), and wins over
	// them.
	Env map[string]string
	// Hidden names variables of the host that are left out, too: secrets by
	// another name. What Env has under such a name stays.
	Hidden []string
	// CleanEnv leaves out all of the host's variables but those that child.Plain
	// names.
	CleanEnv bool
	// Timeout bounds a command that names none; zero means DefaultTimeout.
	Timeout time.Duration
	// Interpreter is the shell and its flags; empty means bash -c, or sh
	// where there is no bash.
	Interpreter []string
	// Helper runs the commands from a process of its own, which kills them when
	// this program is gone, however it went. Without one they are this program's
	// own, and fewer promises are kept (see the package).
	Helper *child.Program
	// Disposable says that Dir was made for this environment: Close removes it.
	Disposable bool
	// Warnings are what Info is to say of Dir, beside its own.
	Warnings []string
}

// Local is the host as a sandbox.
type Local struct {
	config Config
	info   env.Info
	runner commands
}

var _ env.Environment = (*Local)(nil)

// commands runs them; it is either of direct, in this process, and child.Box,
// by a helper.
type commands interface {
	Execute(ctx context.Context, c env.Command) (env.Result, error)
	env.Files
	Close(ctx context.Context) error
}

// New prepares the host. While any Local with a helper is open in a program, the
// program must not start processes in sessions of their own (see process.Ward). A disposable folder stays where New fails.
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
			Hint:   "name a directory that exists",
			Err:    fmt.Errorf("working directory %s is not there", dir),
		}
	}
	c.Dir = dir
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	l := &Local{config: c, info: process.System()}
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

// start brings up what runs the commands.
func (l *Local) start(ctx context.Context) error {
	c := l.config
	if c.Helper == nil {
		l.runner = newDirect(c)
		return nil
	}
	box, err := child.Start(ctx, child.Config{
		Name:    "the local environment in " + c.Dir,
		Program: c.Helper,
		NoTrace: true,
		Env:     c.environ(),
		Setup:   helper.Setup{Dir: c.Dir, Interpreter: c.Interpreter, ToolDir: c.Helper.ToolDir()},
		Info:    func(helper.Hello) env.Info { return l.info },
		Timeout: c.Timeout,
	})
	l.runner = box
	return err
}

// environ is what every command starts with.
func (c Config) environ() []string {
	host := withoutGit(WithoutSecrets(os.Environ(), c.Hidden))
	if c.CleanEnv {
		host = child.Plain(host)
	}
	return process.Merge(host, c.Env)
}

// Info describes the host.
func (l *Local) Info() env.Info { return l.info }

// Execute runs one command on the host, after the one that runs now.
func (l *Local) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	return l.runner.Execute(ctx, c)
}

// Close ends the running command, which returns env.ErrClosed, kills what
// earlier ones left running, and removes a disposable folder. It waits for all
// of it, some seconds at most, even when ctx has ended: what is left running
// would have no owner.
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
