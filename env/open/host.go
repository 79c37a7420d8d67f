package envopen

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
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// IsHostClass reports whether sandboxes of a class run on this machine without a
// container engine.
func IsHostClass(class string) bool { return configs.RunsOnHost(class) }

// Heading names the sandboxes in the heading of a run: "docker sandboxes".
func (s *Sandboxes) Heading() string {
	if s.Class == "local" {
		return "no sandbox (commands run as you on this machine)"
	}
	return s.Class + " sandboxes"
}

// folder is the working directory of a sandbox on this machine.
type folder struct {
	dir       string
	temporary bool // created for the sandbox, and removed when that is closed
	warnings  []string
}

// host makes s start sandboxes on this machine, each in its own temporary folder. If
// isDemo is true, the folder has the repository of the demo instance; otherwise the
// folder is empty.
func (s *Sandboxes) host(ctx context.Context, cfg *configs.Resolved, isDemo bool, w io.Writer) error {
	if err := s.openHost(ctx, cfg); err != nil {
		return err
	}
	sweepFolders(w)
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, keepFunc, error) {
		f := folder{temporary: true}
		var err error
		fail := func(err error) (env.Environment, keepFunc, error) {
			return nil, nil, &env.Error{Status: env.StartFailed, Op: "start a sandbox for " + in.ID, Err: err}
		}
		if f.dir, err = scratch.New(in.ID); err != nil {
			return fail(err)
		}
		if isDemo {
			err = demo.Unpack(ctx, in.ID, f.dir)
		} else {
			f.warnings = []string{
				"the " + s.Class + " environment has no repository of " + in.ID + "; its commands start in an empty folder",
			}
		}
		var sandbox env.Environment
		if err == nil {
			sandbox, err = s.open(ctx, f)
		}
		if err != nil {
			return fail(errors.Join(err, scratch.Remove(f.dir)))
		}
		return sandbox, keepFolder(f.dir), nil
	}
	return nil
}

// UseHostDir makes all sandboxes work in the folder of this machine that environment.cwd
// names, or in the current folder if that setting is empty.
func (s *Sandboxes) UseHostDir(cfg *configs.Resolved) error {
	dir := cmp.Or(cfg.Environment.Dir, ".")
	if s.checkDir != nil {
		if err := s.checkDir(dir); err != nil {
			return usage.Errorf("%w", err)
		}
	}
	s.start = func(ctx context.Context, _ datasets.Instance) (env.Environment, keepFunc, error) {
		sandbox, err := s.open(ctx, folder{dir: dir})
		return sandbox, nil, err
	}
	return nil
}

// openHost checks the settings of a host class, loads the helper unless it has one, and
// sets s.open and s.release.
func (s *Sandboxes) openHost(ctx context.Context, cfg *configs.Resolved) error {
	if err := CheckSettings(cfg, s.Class); err != nil {
		return err
	}
	e := cfg.Environment
	if o, ok := cfg.Origin("environment.env.BASH_ENV"); ok && o.IsBuiltin() {
		// The default names a file in the official images.
		e.Env = maps.Clone(e.Env)
		delete(e.Env, "BASH_ENV")
	}
	if s.release = nil; s.helper == nil { // else it is that of another Sandboxes
		if err := s.loadHelper(e); err != nil {
			return err
		}
	}
	if s.Class == "bubblewrap" {
		if err := s.bubblewrap(ctx, e, s.helper); err != nil {
			return errors.Join(err, s.Close())
		}
		return nil
	}
	program := s.helper
	hidden := SecretVariables(cfg)
	_ = local.ClearProcEnviron(func(name string) bool { return slices.Contains(hidden, name) }) // see local.ProtectMemory
	s.open = func(ctx context.Context, f folder) (env.Environment, error) {
		if program == nil {
			f.warnings = append(f.warnings, "commands keep running if mini is killed with kill -9: there is no helper for this system")
		}
		sandbox, err := local.New(ctx, local.Config{
			Dir: f.dir, Disposable: f.temporary, Warnings: f.warnings, Helper: program,
			Env: SandboxVariables(e), CleanEnv: e.CleanEnv, Hidden: hidden, Timeout: configs.Duration(e.Timeout), Interpreter: e.Interpreter,
		})
		if err != nil {
			return nil, err // avoid returning a typed nil
		}
		return sandbox, nil
	}
	return nil
}

// loadHelper loads the helper of this machine. Without one, s.helper is nil.
func (s *Sandboxes) loadHelper(e configs.Environment) (err error) {
	if runtime.GOOS != "linux" {
		s.helper, err = child.Load(nil, "") // returns an error
	} else {
		var binary []byte
		var hash string
		if binary, hash, err = binaries.Load(e.HelperDir, runtime.GOARCH); err == nil {
			s.helper, err = child.Load(binary, hash)
		}
	}
	if s.helper != nil {
		s.release = s.helper.Close
	}
	// The local environment works without a helper, if there is none for this system or in this build.
	if s.Class == "bubblewrap" || runtime.GOOS == "linux" && !errors.Is(err, binaries.ErrNotBuilt) {
		return err
	}
	return nil
}

// CheckHost checks that sandboxes on this machine can be opened.
func CheckHost(ctx context.Context, cfg *configs.Resolved) error {
	s := &Sandboxes{Class: cfg.Environment.Class}
	if err := s.openHost(ctx, cfg); err != nil {
		return err
	}
	return s.Close()
}

func (s *Sandboxes) bubblewrap(ctx context.Context, e configs.Environment, program *child.Program) error {
	base, err := BubblewrapConfig(e)
	if err != nil {
		return err
	}
	host, err := bubblewrap.Open(ctx, program)
	if err != nil {
		return err
	}
	s.checkDir = host.CheckDir
	s.open = func(ctx context.Context, f folder) (env.Environment, error) {
		c := base
		c.Dir, c.Disposable, c.Warnings = f.dir, f.temporary, f.warnings
		if f.temporary && filepath.IsAbs(e.Dir) {
			c.MountPath = filepath.Clean(e.Dir) // as in a container
		}
		sandbox, err := host.Start(ctx, c)
		if err != nil {
			return nil, err // avoid returning a typed nil
		}
		return sandbox, nil
	}
	return nil
}

// BubblewrapConfig returns the configuration that all bubblewrap sandboxes of a
// run share.
func BubblewrapConfig(e configs.Environment) (bubblewrap.Config, error) {
	parsed := parseContainer(e)
	c := bubblewrap.Config{
		Env: parsed.Env, Timeout: parsed.Timeout, Interpreter: e.Interpreter,
		Network: e.Network, ShmBytes: parsed.ShmBytes, Tmpfs: parsed.Tmpfs,
	}
	for _, m := range parsed.Mounts {
		c.Mounts = append(c.Mounts, bubblewrap.Mount(m))
	}
	if err := c.Validate(); err != nil {
		return c, usage.Errorf("environment: %w", err)
	}
	return c, nil
}

// sweepFolders removes the temporary folders of mini processes that were killed.
func sweepFolders(w io.Writer) {
	for _, dir := range scratch.Sweep() {
		_, _ = fmt.Fprintln(w, "mini: removed leftovers of a killed mini:", text.Printable(dir)) // best effort
	}
}
