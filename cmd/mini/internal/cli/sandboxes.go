package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/runner"
)

// sandboxes starts sandboxes of the configured class, and can end all of them
// at once.
type sandboxes struct {
	class string
	start func(ctx context.Context, in datasets.Instance) (env.Environment, error)
	close func() error
	// open is for classes of this machine: a sandbox in a folder.
	open func(ctx context.Context, f workFolder) (env.Environment, error)
	// suits says why a folder of the user's cannot be one; nil where any can.
	suits func(dir string) error
	// engine is the container engine, images what looks after its images; nil
	// where there are none.
	engine *docker.Engine
	images *images.Store
	needs  func(rows []datasets.Instance) []images.Need
	// scrubs says that containers start from images whose repository was scrubbed
	// once for all of them.
	scrubs bool

	mu   sync.Mutex
	live map[env.Environment]bool
}

// Start implements runner.Sandboxes.
func (s *sandboxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	box, err := s.start(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.track(box), nil
}

// track notes a sandbox until it is closed.
func (s *sandboxes) track(box env.Environment) env.Environment {
	t := &tracked{Environment: box, ended: s.forget}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[t] = true
	return t
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

// Unwrap says what it is around, see env.FilesOf.
func (t *tracked) Unwrap() env.Environment { return t.Environment }

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
	switch {
	case onHost(s.class):
		err = s.host(ctx, cfg, isDemo, w)
	default:
		err = s.docker(ctx, cfg, run, w, emit)
		if e, ok := errors.AsType[*env.Error](err); ok && e.Status == env.DaemonUnavailable && fallBack {
			_, _ = fmt.Fprintln(w, "mini: no container engine answers, so the demo runs in the local environment: the repositories are unpacked in a temporary folder and the commands run on this machine") // only for people
			s.class = "local"
			err = s.host(ctx, cfg, isDemo, w)
		}
	}
	if err != nil {
		return nil, before(err)
	}
	s.endWith(kill)
	return s, nil
}

// endWith closes all sandboxes when kill ends.
func (s *sandboxes) endWith(kill context.Context) {
	stop := context.AfterFunc(kill, s.killAll)
	closeShared := s.close
	s.close = func() error {
		stop()
		return closeShared()
	}
}

// byDefault says that the user did not ask for this class of environment.
func byDefault(cfg *configs.Resolved) bool {
	o, ok := cfg.Origin("environment.environment_class")
	return !ok || o.Shipped()
}

// connect opens the container engine, with what looks after its images, and
// clears away what dead minis have left.
func (s *sandboxes) connect(ctx context.Context, cfg *configs.Resolved, w io.Writer, emit func(runner.Event)) (err error) {
	e := cfg.Environment
	keeping, done, err := imageConfig(cfg, false, imageEvents(emit))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	engine, err := docker.Open(ctx, docker.EngineConfig{
		Images:       keeping,
		HelperDir:    e.HelperDir,
		MaxStarts:    cfg.Run.MaxStarts,
		PullTimeout:  duration(e.PullTimeout),
		PullProgress: pullEvents(emit),
		Notice:       func(text string) { emit(runner.Event{Type: runner.Warning, Text: text}) },
	})
	if err != nil {
		return err
	}
	// Each image would find this out by itself; better once, and now.
	if err := helperIsThere(e.HelperDir); err != nil {
		return errors.Join(before(err), engine.Close())
	}
	for _, text := range engine.Warnings() {
		_, _ = fmt.Fprintln(w, "mini: warning:", text) // only for people
	}
	if err := sweep(ctx, engine, w); err != nil {
		return errors.Join(err, engine.Close())
	}
	sweepFolders(w)
	s.close = func() error {
		defer done()
		return engine.Close()
	}
	s.engine, s.images = engine, engine.Images()
	return nil
}

// docker makes sandboxes in containers.
func (s *sandboxes) docker(ctx context.Context, cfg *configs.Resolved, run string, w io.Writer, emit func(runner.Event)) error {
	if err := s.connect(ctx, cfg, w, emit); err != nil {
		return err
	}
	base, err := containerConfig(cfg, run)
	if err == nil {
		err = checkContainer(ctx, cfg, s.engine, base, w)
	}
	if err != nil {
		return errors.Join(err, s.close())
	}
	s.needs = func(rows []datasets.Instance) []images.Need { return imageNeeds(cfg, rows) }
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		c := base
		c.Instance = in.ID
		if c.Image == "" {
			c.Image = in.ImageName()
		}
		doing := func(p runner.Phase) {
			emit(runner.Event{Type: runner.Doing, Phase: p, Instance: in.ID, Text: c.Image})
		}
		doing(runner.Starting)
		if s.scrubs {
			c.Prepare = &docker.Preparation{Key: worktree.PreparationKey(), Do: worktree.Prepare, Begun: func() func() {
				doing(runner.Scrubbing)
				return func() { doing(runner.Starting) }
			}}
		}
		box, err := s.engine.Start(ctx, c)
		if err != nil {
			return nil, err // not a typed nil
		}
		return &container{Container: box, run: run, instance: in.ID}, nil
	}
	return nil
}

// scrubOnce has images scrubbed once for all attempts on them, where attempts
// begin with a scrub. A start-up command comes before it, and may need what is
// removed.
func (s *sandboxes) scrubOnce(cfg *configs.Resolved) {
	s.scrubs = cfg.Agent.Scrub && cfg.Run.StartupCommand == ""
}

// helperIsThere says what is missing where the helper is not, of mini's own or in
// the user's folder.
func helperIsThere(dir string) error {
	if dir == "" {
		_, err := binaries.Hash("", "amd64")
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if _, err := binaries.Hash(dir, arch); err == nil {
			return nil
		}
	}
	return fmt.Errorf("environment.helper_dir: %s has no %s; scripts/helper.sh builds it, or leave the setting away", dir, binaries.Name("amd64"))
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

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// runLabel says in a container's labels which run it is of: two folders of the
// same name are told apart.
func runLabel(dir string) string {
	if dir == "" {
		return "" // a task of its own
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		path = dir
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Base(path) + "-" + hex.EncodeToString(sum[:3])
}
