// Package envopen opens the environment that a configuration names: containers,
// bubblewrap, or commands on this machine.
package envopen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/internal/usage"
)

// Observer receives events of sandboxes and their images. All fields are required.
type Observer struct {
	Pull     func(docker.PullProgress)
	Image    func(imagestore.Event)
	Starting func(instance, image string)
	// Scrubbing is called when a start begins to wait until the repository of the image
	// is scrubbed. Starting is called again after that.
	Scrubbing func(instance, image string)
	// Waiting is called when the reason changes for which the start of a sandbox in a
	// cluster waits: "waiting for quota", "waiting for a node: 0/3 nodes are available". The
	// text before a colon is the kind of the reason. The text is not sanitized.
	Waiting func(instance, reason string)
	Warning func(text string)
}

// Sandboxes starts sandboxes of the configured class.
type Sandboxes struct {
	Class   string
	start   func(ctx context.Context, in datasets.Instance) (env.Environment, keepFunc, error)
	kill    context.Context //nolint:containedctx // closes all sandboxes when it ends
	release func() error    // releases the shared engine or helper; nil if another Sandboxes does
	// open opens a sandbox in a folder of this machine; nil for containers.
	open func(ctx context.Context, f folder) (env.Environment, error)
	// checkDir reports why a folder of the user cannot be used; nil accepts all.
	checkDir func(dir string) error
	// Engine is the container engine, and Images its image store; nil for host
	// classes.
	Engine          *docker.Engine
	Images          *imagestore.Store
	helper          *child.Program // runs on this machine; nil for other classes
	cluster         Cluster        // nil for other classes
	clusterSettings configs.Kubernetes
	requests        func(rows []datasets.Instance) []imagestore.Request
	// ForTask changes the configuration of a container for the row of a task folder, and
	// makes the image available; nil if there are no such rows.
	ForTask func(ctx context.Context, in datasets.Instance, c docker.Config) (docker.Config, error)
	// Install, unless nil, returns the configuration with the image that has the agent's
	// program, which is not removed until release is called.
	Install func(ctx context.Context, c docker.Config) (_ docker.Config, release func(), err error)
	// scrubImages means that containers start from images that were scrubbed once.
	scrubImages bool
}

// Start implements runner.Sandboxes.
func (s *Sandboxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	sandbox, keep, err := s.start(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.track(ctx, sandbox, keep), nil
}

// track closes a sandbox when the kill context of New or Connect ends before the sandbox is closed.
// Running attempts fail then.
func (s *Sandboxes) track(ctx context.Context, sandbox env.Environment, keep keepFunc) env.Environment {
	t := &Tracked{Environment: sandbox, keep: keep}
	t.stop = context.AfterFunc(s.kill, func() { //nolint:contextcheck // the kill context is that of the process
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
		defer cancel()
		_ = sandbox.Close(ctx) // the process is exiting
	})
	return t
}

// killTimeout limits how long a sandbox is closed after a kill. The process exits at most a second
// after this timeout.
const killTimeout = 4 * time.Second

// keepFunc preserves the files of a sandbox beyond its Close. It returns a sentence
// that tells the user where they are.
type keepFunc func(ctx context.Context, attempt int) (string, error)

// Tracked is a sandbox that a kill closes.
type Tracked struct {
	env.Environment
	stop func() bool // ends the wait for a kill
	keep keepFunc    // nil if the sandbox cannot be kept
}

// Unwrap returns the underlying sandbox (see env.AsFiles).
func (t *Tracked) Unwrap() env.Environment { return t.Environment }

// Close implements env.Environment.
func (t *Tracked) Close(ctx context.Context) error {
	defer t.stop()
	return t.Environment.Close(ctx)
}

// Close releases the engine or the helper that the sandboxes share.
func (s *Sandboxes) Close() error {
	if s.release == nil {
		return nil
	}
	return s.release()
}

// Options are how New opens an environment.
type Options struct {
	Demo     bool   // the rows are those of the demo
	FallBack bool   // if no container engine answers, use the local environment, with a note
	Run      string // the run folder; "" for a task
	Notes    io.Writer
	Observer Observer
	// Engine are sandboxes whose container engine and image store, cluster, or helper on this machine are used;
	// nil opens them. They must be closed last.
	Engine *Sandboxes
}

// New opens the configured environment. When kill ends, all sandboxes are closed.
func New(ctx, kill context.Context, cfg *configs.Resolved, o Options) (*Sandboxes, error) {
	s := &Sandboxes{Class: cfg.Environment.Class, kill: kill}
	switch {
	case o.Engine == nil:
	case IsHostClass(s.Class):
		s.helper = o.Engine.helper
	default:
		s.Engine, s.Images = o.Engine.Engine, o.Engine.Images
		s.cluster, s.clusterSettings = o.Engine.cluster, o.Engine.clusterSettings
	}
	var err error
	switch {
	case IsHostClass(s.Class):
		err = s.host(ctx, cfg, o.Demo, o.Notes)
	case configs.UsesCluster(s.Class):
		err = s.pods(ctx, cfg, o.Run, o.Notes, o.Observer)
	default:
		err = s.docker(ctx, cfg, o.Run, o.Notes, o.Observer)
		if e, ok := errors.AsType[*env.Error](err); ok && e.Status == env.DaemonUnavailable && o.FallBack {
			_, _ = fmt.Fprintln(o.Notes, "mini: no container engine answers; the demo runs in the local environment: "+
				"in temporary folders, with commands on this machine") // best effort
			s.Class = "local"
			err = s.host(ctx, cfg, o.Demo, o.Notes)
		}
	}
	if err != nil {
		return nil, usage.Wrap(err)
	}
	return s, nil
}

// IsDefaultClass reports whether the environment class comes from mini's defaults, and
// not from the user.
func IsDefaultClass(cfg *configs.Resolved) bool {
	o, ok := cfg.Origin("environment.environment_class")
	return !ok || o.IsBuiltin()
}

// Connect connects to the cluster, if the class is kubernetes, or else to the container
// engine. The caller starts containers with StartContainer. When kill ends, they are
// closed.
func Connect(ctx, kill context.Context, cfg *configs.Resolved, w io.Writer, o Observer) (*Sandboxes, error) {
	s := &Sandboxes{Class: "docker", kill: kill}
	connect := s.connect
	if configs.UsesCluster(cfg.Environment.Class) {
		s.Class, connect = cfg.Environment.Class, s.connectCluster
	}
	if err := connect(ctx, cfg, w, o); err != nil {
		return nil, usage.Wrap(err)
	}
	return s, nil
}

// connect connects to the container engine and the image store, and removes leftovers
// of mini processes that were killed.
func (s *Sandboxes) connect(ctx context.Context, cfg *configs.Resolved, w io.Writer, o Observer) (err error) {
	e := cfg.Environment
	images, closeRegistry, err := imageConfig(cfg, false, o.Image)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			closeRegistry()
		}
	}()
	engine, err := docker.Open(ctx, docker.EngineConfig{
		Images:       images,
		HelperDir:    e.HelperDir,
		MaxStarts:    cfg.Run.MaxStarts,
		PullTimeout:  configs.Duration(e.PullTimeout),
		PullProgress: o.Pull,
		Notify:       o.Warning,
	})
	if err != nil {
		return err
	}
	// Without the helper, the start of every container would fail.
	if err := checkHelper(e.HelperDir); err != nil {
		return errors.Join(usage.Wrap(err), engine.Close())
	}
	for _, text := range engine.Warnings() {
		_, _ = fmt.Fprintln(w, "mini: warning:", text) // best effort
	}
	if err := sweep(ctx, engine, w); err != nil {
		return errors.Join(err, engine.Close())
	}
	sweepFolders(w)
	s.release = func() error {
		defer closeRegistry()
		return engine.Close()
	}
	s.Engine, s.Images = engine, engine.Images()
	return nil
}

// docker makes s start sandboxes in containers.
func (s *Sandboxes) docker(ctx context.Context, cfg *configs.Resolved, run string, w io.Writer, o Observer) error {
	s.cluster = nil
	if s.Engine == nil {
		if err := s.connect(ctx, cfg, w, o); err != nil {
			return err
		}
	}
	base, err := ContainerConfig(cfg, run)
	if err == nil {
		err = checkContainer(ctx, cfg, s.Engine, base, w)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.requests = func(rows []datasets.Instance) []imagestore.Request { return ImageRequests(cfg, rows) }
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, keepFunc, error) {
		c := base
		c.Instance = in.ID
		if c.Image == "" {
			c.Image = in.ImageName()
		}
		o.Starting(in.ID, c.Image)
		if s.scrubImages {
			c.Prepare = &docker.Preparation{Key: worktree.PreparationKey(), Do: worktree.Prepare, OnWait: func() func() {
				o.Scrubbing(in.ID, c.Image)
				return func() { o.Starting(in.ID, c.Image) }
			}}
		}
		if in.TaskDir != "" && s.ForTask != nil {
			var err error
			if c, err = s.ForTask(ctx, in, c); err != nil {
				return nil, nil, err
			}
		}
		if s.Install != nil {
			installed, release, err := s.Install(ctx, c)
			if err != nil {
				return nil, nil, err
			}
			defer release() // the container keeps its image
			c = installed
		}
		sandbox, err := s.Engine.Start(ctx, c)
		if err != nil {
			return nil, nil, err // avoid returning a typed nil
		}
		return sandbox, keepContainer(sandbox, run, in.ID), nil
	}
	return nil
}

// ScrubOnce makes Start scrub each image once for all attempts instead of each
// container, if attempts begin with a scrub. It has no effect if there is a start-up
// command, which runs before the scrub and may need the history.
func (s *Sandboxes) ScrubOnce(cfg *configs.Resolved) {
	s.scrubImages = cfg.Agent.Scrub && cfg.Run.StartupCommand == ""
}

// checkHelper returns an error if the helper is missing in the folder dir, or, if dir
// is empty, in mini itself.
func checkHelper(dir string) error {
	if dir == "" {
		_, err := binaries.Hash("", runtime.GOARCH)
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if _, err := binaries.Hash(dir, arch); err == nil {
			return nil
		}
	}
	return fmt.Errorf("environment.helper_dir: %s has no %s; build it with scripts/helper.sh, or leave the setting out", dir, binaries.Name("amd64"))
}

// RunLabel returns the container label of a run's folder. The label contains a hash of
// the path, because folders may have the same name.
func RunLabel(dir string) string {
	if dir == "" {
		return "" // a task has no run folder
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		path = dir
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Base(path) + "-" + hex.EncodeToString(sum[:3])
}

// KeepRule returns, for a value of run.keep, a function that reports whether the sandbox
// of an attempt with the given outcome is kept; nil if no sandbox is kept. Interrupted
// attempts are not failures, because they run again.
func KeepRule(setting string) func(trajectories.Outcome) bool {
	switch setting {
	case "all":
		return func(trajectories.Outcome) bool { return true }
	case "failed":
		return func(out trajectories.Outcome) bool {
			return out.Class != trajectories.Submitted && out.Class != trajectories.Interrupted
		}
	}
	return nil
}

// keepContainer returns a keepFunc that keeps c as an image. run is the run folder as
// the user wrote it; "" for a task.
func keepContainer(c *docker.Container, run, instance string) keepFunc {
	return func(ctx context.Context, attempt int) (string, error) {
		image, err := c.Keep(ctx, strconv.Itoa(attempt))
		if err != nil {
			return "", err
		}
		cmd := "mini shell -c environment.image=" + image
		if run != "" {
			cmd = fmt.Sprintf("mini shell --run %s --attempt %d %s", text.ShellQuote(run), attempt, text.ShellQuote(instance))
		}
		return fmt.Sprintf("kept as the image %s; enter it with: %s", image, cmd), nil
	}
}

// keepFolder returns a keepFunc that renames the temporary folder of a sandbox.
func keepFolder(dir string) keepFunc {
	return func(context.Context, int) (string, error) {
		dir, err := scratch.Keep(dir)
		if err != nil {
			return "", err
		}
		return "kept in " + dir + "; remove it when you no longer need it", nil
	}
}

// Keep implements runner.Keeper.
func (t *Tracked) Keep(ctx context.Context, attempt int) (string, error) {
	if t.keep == nil {
		return "", errors.New("this environment cannot keep sandboxes")
	}
	return t.keep(ctx, attempt)
}

// sweep removes the containers and volumes of mini processes that were killed, and
// prints what it removed. What it cannot remove is a warning; it returns an error only if
// the engine does not answer or ctx has ended.
func sweep(ctx context.Context, engine *docker.Engine, w io.Writer) error {
	removed, err := engine.Sweep(ctx)
	for _, l := range removed {
		_, _ = fmt.Fprintln(w, "mini: removed leftovers of a killed mini:", text.Printable(l.String())) // best effort
	}
	failed, ok := errors.AsType[*env.Error](err)
	if err == nil || !ok || failed.Status == env.DaemonUnavailable {
		return err
	}
	_, _ = fmt.Fprintln(w, "mini: warning: cannot remove leftovers of a killed mini:", text.Printable(err.Error())) // best effort
	return nil
}
