package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/runner"
)

// sandboxes starts sandboxes of the configured class, and can end all of them
// at once.
type sandboxes struct {
	class string
	start func(ctx context.Context, in datasets.Instance) (env.Environment, error)
	close func() error
	// images is what looks after images; nil where there are none.
	images *images.Store
	image  func(in datasets.Instance) images.Need

	mu   sync.Mutex
	live map[env.Environment]bool
}

// Start implements runner.Sandboxes.
func (s *sandboxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	box, err := s.start(ctx, in)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &tracked{Environment: box, ended: s.forget}
	s.live[t] = true
	return t, nil
}

func (s *sandboxes) forget(e env.Environment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, e)
}

// tracked is a sandbox that says when it was closed.
type tracked struct {
	env.Environment
	ended func(env.Environment)
}

// Close implements env.Environment.
func (t *tracked) Close(ctx context.Context) error {
	defer t.ended(t)
	return t.Environment.Close(ctx)
}

// killAll ends every sandbox now. Attempts that run find theirs gone.
func (s *sandboxes) killAll() {
	s.mu.Lock()
	live := slices.Collect(maps.Keys(s.live))
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), killGrace-time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, box := range live {
		wg.Go(func() { _ = box.Close(ctx) }) // there is no time left to tell
	}
	wg.Wait()
}

// Close gives back what the sandboxes share.
func (s *sandboxes) Close() error { return s.close() }

// newSandboxes connects to what the configuration names. The demo works
// without a container engine too, and says so.
func newSandboxes(
	ctx, kill context.Context, cfg *configs.Resolved, isDemo, fallBack bool, run string, w io.Writer, emit func(runner.Event),
) (*sandboxes, error) {
	s := &sandboxes{class: cfg.Environment.Class, live: map[env.Environment]bool{}}
	var err error
	switch s.class {
	case "local":
		err = s.local(cfg, isDemo)
	default:
		err = s.docker(ctx, cfg, run, w, emit)
		if e, ok := errors.AsType[*env.Error](err); ok && e.Status == env.DaemonUnavailable && fallBack {
			_, _ = fmt.Fprintln(w, "mini: no container engine answers, so the demo runs in the local environment: the repositories are unpacked in a temporary folder and the commands run on this machine") // only for people
			s.class = "local"
			err = s.local(cfg, isDemo)
		}
	}
	if err != nil {
		return nil, before(err)
	}
	stop := context.AfterFunc(kill, s.killAll)
	closeShared := s.close
	s.close = func() error {
		stop()
		return closeShared()
	}
	return s, nil
}

// byDefault says that the user did not ask for this class of environment.
func byDefault(cfg *configs.Resolved) bool {
	o, ok := cfg.Origin("environment.environment_class")
	return !ok || o.Shipped()
}

func (s *sandboxes) docker(ctx context.Context, cfg *configs.Resolved, run string, w io.Writer, emit func(runner.Event)) error {
	e := cfg.Environment
	keeping, done, err := imageConfig(cfg, imageEvents(emit))
	if err != nil {
		return err
	}
	engine, err := docker.Open(ctx, docker.EngineConfig{
		Images:       keeping,
		HelperDir:    e.HelperDir,
		MaxStarts:    cfg.Run.MaxStarts,
		PullTimeout:  duration(e.PullTimeout),
		PullProgress: pullEvents(emit),
	})
	if err != nil {
		return err
	}
	if e.HelperDir == "" {
		// Each image would find this out by itself; better once, and now.
		if _, _, err := binaries.For("amd64"); err != nil {
			return errors.Join(before(err), engine.Close())
		}
	}
	for _, text := range engine.Warnings() {
		_, _ = fmt.Fprintln(w, "mini: warning:", text) // only for people
	}
	removed, err := engine.Sweep(ctx)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	if len(removed) > 0 {
		_, _ = fmt.Fprintf(w, "mini: removed %d container(s) that a killed mini had left\n", len(removed)) // only for people
	}
	base, err := containerConfig(cfg, run)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	s.close = func() error {
		defer done()
		return engine.Close()
	}
	s.images = engine.Images()
	s.image = func(in datasets.Instance) images.Need { return imageNeed(cfg, in) }
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		c := base
		c.Instance = in.ID
		if c.Image == "" {
			c.Image = in.ImageName()
		}
		emit(runner.Event{Type: runner.Doing, Phase: runner.Starting, Instance: in.ID, Text: c.Image})
		box, err := engine.Start(ctx, c)
		if err != nil {
			return nil, err // not a typed nil
		}
		return box, nil
	}
	return nil
}

// pullInterval bounds how often a pull that goes on is told of.
const pullInterval = 2 * time.Second

// pullEvents tells of pulls at a rate that people can read.
func pullEvents(emit func(runner.Event)) func(docker.PullProgress) {
	var mu sync.Mutex
	told := map[string]time.Time{}
	return func(p docker.PullProgress) {
		mu.Lock()
		defer mu.Unlock()
		if !p.Done && time.Since(told[p.Image]) < pullInterval {
			return
		}
		told[p.Image] = time.Now()
		text := fmt.Sprintf("%s: %d of %d layers, %d of %d MB", p.Image, p.LayersDone, p.Layers, p.Bytes/1e6, p.Total/1e6)
		switch {
		case p.Stopped:
			text = p.Image + ": the pull was stopped"
		case p.Failed:
			text = p.Image + ": the pull has failed"
		case p.Done:
			text = p.Image + ": the pull has ended"
		}
		emit(runner.Event{Type: runner.Pull, Text: text, Pull: &runner.PullState{
			Image: p.Image, Layers: p.Layers, LayersDone: p.LayersDone, Bytes: p.Bytes, Total: p.Total, Done: p.Done, Failed: p.Failed, Stopped: p.Stopped,
		}})
	}
}

// containerConfig is what all containers of a run have in common.
func containerConfig(cfg *configs.Resolved, run string) (docker.Config, error) {
	e := cfg.Environment
	memory, err := configs.Size(e.Memory)
	if err != nil {
		return docker.Config{}, err
	}
	shm, err := configs.Size(e.ShmSize)
	if err != nil {
		return docker.Config{}, err
	}
	c := docker.Config{
		Image: e.Image, Dir: e.Dir, Env: withForwarded(e), Timeout: duration(e.Timeout), Interpreter: e.Interpreter,
		Network: e.Network, MemoryBytes: memory, ShmBytes: shm, CPUs: e.CPUs, PIDs: e.PidsLimit,
		User: e.User, Platform: e.Platform, CapAdd: e.CapAdd, CapDrop: e.CapDrop,
		NewPrivileges: e.NewPrivileges, Force: e.Unsafe, Run: filepath.Base(run),
	}
	// The image may be each row's own; everything else is known now.
	check := c
	check.Image = cmp.Or(c.Image, "row")
	if err := check.Validate(); err != nil {
		return c, usagef("environment: %w", err)
	}
	return c, nil
}

// withForwarded adds the variables of this process that are to be passed on.
func withForwarded(e configs.Environment) map[string]string {
	vars := maps.Clone(e.Env)
	if vars == nil {
		vars = map[string]string{}
	}
	for _, name := range e.ForwardEnv {
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	return vars
}

// local runs commands on this machine, each attempt in a temporary folder of
// its own, with the instance's repository where mini has it.
func (s *sandboxes) local(cfg *configs.Resolved, isDemo bool) error {
	e := cfg.Environment
	if o, ok := cfg.Origin("environment.env.BASH_ENV"); ok && o.Shipped() {
		// The default is about the official images; here it would name a file
		// of this machine's own.
		e.Env = maps.Clone(e.Env)
		delete(e.Env, "BASH_ENV")
	}
	s.close = func() error { return nil }
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		tmp, err := os.MkdirTemp("", "mini-"+in.ID+"-")
		if err != nil {
			return nil, &env.Error{Status: env.StartFailed, Op: "make a folder for " + in.ID, Err: err}
		}
		var warnings []string
		if isDemo {
			err = demo.Unpack(ctx, in.ID, tmp)
		} else {
			warnings = []string{"the local environment has no repository of " + in.ID + "; its commands start in an empty folder"}
		}
		if err == nil {
			var box *local.Local
			box, err = local.New(ctx, local.Config{
				Dir: tmp, Env: withForwarded(e), Timeout: duration(e.Timeout), Interpreter: e.Interpreter,
			})
			if err == nil {
				return &temporary{Environment: box, dir: tmp, warnings: warnings}, nil
			}
		}
		return nil, &env.Error{
			Status: env.StartFailed, Op: "start local environment for " + in.ID, Err: errors.Join(err, os.RemoveAll(tmp)),
		}
	}
	return nil
}

// temporary is an environment whose folder goes with it.
type temporary struct {
	env.Environment
	dir      string
	warnings []string
}

// Info implements env.Environment.
func (t *temporary) Info() env.Info {
	info := t.Environment.Info()
	info.Warnings = append(slices.Clone(info.Warnings), t.warnings...)
	return info
}

// Close implements env.Environment.
func (t *temporary) Close(ctx context.Context) error {
	return errors.Join(t.Environment.Close(ctx), os.RemoveAll(t.dir))
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
