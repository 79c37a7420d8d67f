package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/flight"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/env/helper/binaries"
)

// EngineConfig says how to reach an engine and how hard to press it. The zero
// value works.
type EngineConfig struct {
	// Host is the engine's address, as "unix:///run/docker.sock"; empty means
	// DOCKER_HOST, or the default socket.
	Host string
	// HelperDir is a folder with helper binaries as scripts/helper.sh builds
	// them; empty means those embedded in this program.
	HelperDir string
	// MaxStarts bounds how many containers start at once; zero means twice
	// the number of processors, beyond which starts only get in each other's
	// way.
	MaxStarts int
	// PullTimeout is how long a pull may be silent, whatever it takes in all;
	// zero means five minutes.
	PullTimeout time.Duration
	// PullProgress is told how pulls come along, a few times a second each;
	// calls for different images may come at the same time.
	PullProgress func(PullProgress)
	// Notice is told, in a sentence, what somebody should know who wonders why
	// nothing goes on; it must be quick. It may be nil.
	Notice func(string)
	// PauseLimit is how long a container may be paused while a command runs in
	// it; zero means five minutes, and more than that is too long: one that wakes
	// must find its owner alive.
	PauseLimit time.Duration
	// Images says how images are looked after. Without it Start pulls what is
	// missing, and nothing is ever removed.
	Images *images.Config
}

// Engine is a connection to a container engine. Its methods are safe for
// concurrent use; a batch shares one.
type Engine struct {
	api      api
	cfg      EngineConfig
	owner    owner
	warnings []string
	starts   chan struct{} // as many tokens as starts at once
	pulls    flight.Group
	fills    flight.Group
	// preparing is about images that are being prepared.
	preparing flight.Group
	images    *images.Store // nil where nothing looks after them
	pulse     *pulse
	// shortcuts lead to helpers where the engine is on this machine.
	shortcuts shortcuts

	mu      sync.Mutex
	open    map[*Container]struct{}
	owed    []string           // containers whose removal failed
	helpers map[string]program // by architecture
	filled  map[string]bool    // volumes known to hold their helper
	// unprepared are names of images that could not be made.
	unprepared map[string]bool
}

// program is a helper to be put into sandboxes.
type program struct {
	dir        string // with its file; empty for the embedded one
	arch, hash string
}

// content is the program. It is read when it is needed, which is once for each
// engine and version of mini.
func (b program) content() ([]byte, error) {
	content, hash, err := binaries.For(b.dir, b.arch)
	if err == nil && hash != b.hash {
		err = fmt.Errorf("the helper for %s is not what its checksum says; build it again with scripts/helper.sh", b.arch)
	}
	return content, err
}

// pingTimeout bounds the first word with the engine.
const pingTimeout = 10 * time.Second

// Open connects to the engine. The error is an *env.Error with status
// DaemonUnavailable and a hint when no engine answers.
func Open(ctx context.Context, cfg EngineConfig) (*Engine, error) {
	if cfg.MaxStarts <= 0 {
		cfg.MaxStarts = 2 * runtime.NumCPU()
	}
	if cfg.PullTimeout <= 0 {
		cfg.PullTimeout = 5 * time.Minute
	}
	opts := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if cfg.Host != "" {
		opts = append(opts, client.WithHost(cfg.Host))
	}
	ends := false
	opts = append(opts, func(c *client.Client) error { // last: the transport is as it will be
		transport, _ := c.HTTPClient().Transport.(*http.Transport)
		ends = leashed(transport)
		return nil
	})
	cli, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, &env.Error{Status: env.DaemonUnavailable, Op: "set up engine client", Hint: hintDaemon, Err: err}
	}
	if cfg.PauseLimit <= 0 {
		cfg.PauseLimit = defaultPauseLimit
	}
	e := &Engine{
		cfg:     cfg,
		open:    make(map[*Container]struct{}),
		starts:  make(chan struct{}, cfg.MaxStarts),
		helpers: make(map[string]program),
		filled:  make(map[string]bool),

		unprepared: make(map[string]bool),
	}
	e.pulse = newPulse(silenceLimit,
		func(ctx context.Context) error { _, err := cli.Ping(ctx); return err },
		func(ctx context.Context) { e.lookForPaused(ctx, cli) })
	e.api = &bounded{api: cli, pulse: e.pulse, leashed: ends}
	if e.owner, err = self(); err != nil {
		_ = cli.Close() // nothing was sent
		return nil, err
	}
	if v := os.Getenv(client.EnvOverrideAPIVersion); v != "" {
		e.warnings = append(e.warnings, fmt.Sprintf("%s is set to %s: the engine is spoken to in that version, "+
			"not in the newest that both know", client.EnvOverrideAPIVersion, v))
	}
	if err := e.ping(ctx); err != nil {
		_ = cli.Close() // the ping's error is the one that matters
		return nil, err
	}
	e.shortcuts.off = !nearby(cli.DaemonHost())
	if cfg.Images != nil {
		if e.images, err = e.lookAfterImages(ctx, *cfg.Images); err != nil {
			_ = cli.Close() // as above
			return nil, err
		}
	}
	return e, nil
}

func (e *Engine) ping(ctx context.Context) error {
	pinging, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	ping, err := e.api.Ping(pinging)
	op := "reach container engine at " + e.api.DaemonHost()
	if err != nil && ctx.Err() == nil && pinging.Err() != nil {
		return &env.Error{
			Status: env.DaemonUnavailable, Op: op, Hint: hintSilent,
			Err: fmt.Errorf("no answer in %s", pingTimeout),
		}
	}
	if err != nil {
		return failure(ctx, env.DaemonUnavailable, op, err)
	}
	if ping.OSType != "" && ping.OSType != "linux" {
		return &env.Error{
			Status: env.DaemonUnavailable, Op: op,
			Hint: "switch it to Linux containers", Err: fmt.Errorf("it runs %s containers", ping.OSType),
		}
	}
	return nil
}

// Warnings are sentences for the user about this connection.
func (e *Engine) Warnings() []string { return e.warnings }

// Close closes the connection. Containers that are still open lose nothing but
// cannot be removed through it any more: close them first. Those whose removal
// had failed are tried once more.
func (e *Engine) Close() error {
	e.settle(context.Background()) // bounded in itself
	e.pulse.close()
	left := e.shortcuts.close()
	if err := e.api.Close(); err != nil {
		return errors.Join(fmt.Errorf("close engine connection: %w", err), left)
	}
	return left
}

// entered and left keep count of the containers that are up.
func (e *Engine) entered(c *Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[c] = struct{}{}
}

func (e *Engine) left(c *Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, c)
}

// helper finds the helper for an architecture, once.
func (e *Engine) helper(arch string) (program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.helpers[arch]; ok {
		return b, nil
	}
	hash, err := binaries.Hash(e.cfg.HelperDir, arch)
	if err != nil {
		return program{}, err
	}
	b := program{dir: e.cfg.HelperDir, arch: arch, hash: hash}
	e.helpers[arch] = b
	return b, nil
}
