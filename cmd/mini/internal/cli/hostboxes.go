package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/runner/report"
)

func onHost(class string) bool { return configs.OnHost(class) }

// workFolder is where the commands of an attempt work on this machine.
type workFolder struct {
	dir      string
	own      bool // it was made for the attempt, and goes with it
	warnings []string
}

// host makes sandboxes on this machine: each attempt in a temporary folder of
// its own, with the instance's repository where mini has it.
func (s *sandboxes) host(ctx context.Context, cfg *configs.Resolved, isDemo bool, w io.Writer) error {
	if err := s.hostOpen(ctx, cfg); err != nil {
		return err
	}
	sweepFolders(w)
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		dir, err := scratch.New(in.ID)
		if err != nil {
			return nil, &env.Error{Status: env.StartFailed, Op: "start a sandbox for " + in.ID, Err: err}
		}
		f := workFolder{dir: dir, own: true}
		if isDemo {
			err = demo.Unpack(ctx, in.ID, dir)
		} else {
			f.warnings = []string{"the " + s.class + " environment has no repository of " + in.ID + "; its commands start in an empty folder"}
		}
		if err == nil {
			var box env.Environment
			if box, err = s.open(ctx, f); err == nil {
				return &folder{box, dir}, nil
			}
		}
		return nil, &env.Error{
			Status: env.StartFailed, Op: "start a sandbox for " + in.ID, Err: errors.Join(err, scratch.Remove(dir)),
		}
	}
	return nil
}

// here makes sandboxes of one folder of the user's.
func (s *sandboxes) here(cfg *configs.Resolved) error {
	dir := cmp.Or(cfg.Environment.Dir, ".")
	if s.suits != nil {
		if err := s.suits(dir); err != nil {
			return usagef("%w", err)
		}
	}
	s.start = func(ctx context.Context, _ datasets.Instance) (env.Environment, error) {
		return s.open(ctx, workFolder{dir: dir})
	}
	return nil
}

// hostOpen finds what the class needs on this machine.
func (s *sandboxes) hostOpen(ctx context.Context, cfg *configs.Resolved) (err error) {
	if err := kept(cfg, s.class); err != nil {
		return err
	}
	e := cfg.Environment
	if o, ok := cfg.Origin("environment.env.BASH_ENV"); ok && o.Shipped() {
		// The default is about the official images; here it would name a file
		// of this machine's own.
		e.Env = maps.Clone(e.Env)
		delete(e.Env, "BASH_ENV")
	}
	program, err := loadHelper(e)
	if err != nil && (s.class == "bubblewrap" || !unguarded(err)) {
		return err
	}
	s.close = func() error { return nil }
	if program != nil {
		s.close = program.Close
		defer func() {
			if err != nil {
				err = errors.Join(err, program.Close())
			}
		}()
	}
	if s.class == "bubblewrap" {
		return s.bubblewrap(ctx, e, program)
	}
	hidden := keyVariables(cfg)
	_ = clearEnviron(func(name string) bool { return slices.Contains(hidden, name) }) // see closeMemory
	s.open = localBoxes(e, hidden, program)
	return nil
}

// tryHost brings up and closes what sandboxes on this machine are made with.
func tryHost(ctx context.Context, cfg *configs.Resolved) error {
	s := &sandboxes{class: cfg.Environment.Class}
	if err := s.hostOpen(ctx, cfg); err != nil {
		return err
	}
	return s.close()
}

// loadHelper is the helper for this machine.
func loadHelper(e configs.Environment) (*child.Program, error) {
	binary, hash, err := binaries.For(e.HelperDir, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return child.Load(binary, hash)
}

// unguarded says of an error of loadHelper that the local environment does
// without: this system has no helper, or this mini was built without one.
func unguarded(err error) bool {
	return runtime.GOOS != "linux" || errors.Is(err, binaries.ErrNotBuilt)
}

func localBoxes(e configs.Environment, hidden []string, program *child.Program) func(context.Context, workFolder) (env.Environment, error) {
	return func(ctx context.Context, f workFolder) (env.Environment, error) {
		if program == nil {
			f.warnings = append(f.warnings, "there is no helper here to watch over commands: they run on when mini is killed with kill -9")
		}
		box, err := local.New(ctx, local.Config{
			Dir: f.dir, Disposable: f.own, Warnings: f.warnings, Helper: program,
			Env: withForwarded(e), CleanEnv: e.CleanEnv, Hidden: hidden, Timeout: duration(e.Timeout), Interpreter: e.Interpreter,
		})
		if err != nil {
			return nil, err // not a typed nil
		}
		return box, nil
	}
}

func (s *sandboxes) bubblewrap(ctx context.Context, e configs.Environment, program *child.Program) error {
	base, err := bubblewrapConfig(e)
	if err != nil {
		return err
	}
	machine, err := bubblewrap.Open(ctx, program)
	if err != nil {
		return err
	}
	s.suits = machine.Suits
	s.open = func(ctx context.Context, f workFolder) (env.Environment, error) {
		c := base
		c.Dir, c.Disposable, c.Warnings = f.dir, f.own, f.warnings
		if f.own && filepath.IsAbs(e.Dir) {
			c.Inside = filepath.Clean(e.Dir) // where a container would have it
		}
		box, err := machine.Start(ctx, c)
		if err != nil {
			return nil, err // not a typed nil
		}
		return box, nil
	}
	return nil
}

// bubblewrapConfig is what all sandboxes of a run have in common.
func bubblewrapConfig(e configs.Environment) (bubblewrap.Config, error) {
	shm, err := configs.Size(e.ShmSize)
	if err != nil {
		return bubblewrap.Config{}, err
	}
	c := bubblewrap.Config{
		Env: withForwarded(e), Timeout: duration(e.Timeout), Interpreter: e.Interpreter,
		Network: e.Network, ShmBytes: shm,
	}
	for dir, text := range e.Tmpfs {
		size, err := configs.Size(text)
		if err != nil {
			return c, usagef(`environment.tmpfs.%s: %q is not a size; write "512m"`, dir, text)
		}
		if c.Tmpfs == nil {
			c.Tmpfs = map[string]int64{}
		}
		c.Tmpfs[dir] = size
	}
	for _, text := range e.Mounts {
		m, err := configs.ParseMount(text)
		if err != nil {
			return c, usagef("environment.mounts: %w", err)
		}
		c.Mounts = append(c.Mounts, bubblewrap.Mount(m))
	}
	if err := c.Validate(); err != nil {
		return c, usagef("environment: %w", err)
	}
	return c, nil
}

// sweepFolders removes the temporary folders of minis that were killed.
func sweepFolders(w io.Writer) {
	for _, dir := range scratch.Sweep() {
		_, _ = fmt.Fprintln(w, "mini: removed what a killed mini had left:", report.Printable(dir)) // only for people
	}
}
