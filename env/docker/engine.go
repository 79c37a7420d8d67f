package docker

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/docker/singleflight"
	"github.com/minibench/mini/env/helper/binaries"
)

// EngineConfig configures the connection to an engine. The zero value is usable.
type EngineConfig struct {
	// Host is the engine's address, for example "unix:///run/docker.sock"; empty
	// means DOCKER_HOST, or the default socket.
	Host string
	// HelperDir is a directory with helper binaries built by scripts/helper.sh;
	// empty means the binaries embedded in this program.
	HelperDir string
	// MaxStarts is the number of containers that may start at the same time; zero
	// means twice the number of processors. More are not faster.
	MaxStarts int
	// PullTimeout is how long a pull may make no progress; zero means five
	// minutes. The total time is not limited.
	PullTimeout time.Duration
	// PullProgress, if not nil, is called a few times a second for each running pull;
	// concurrently for different images.
	PullProgress func(PullProgress)
	// Notify, if not nil, is called with a message for the user about why an attempt
	// waits, or why an image could not be prepared. It must return quickly.
	Notify func(string)
	// PauseLimit is how long a container may be paused while a command or a copy of
	// files runs in it. Zero means five minutes, which is also the longest useful value:
	// the helper of a container that is resumed later may find its lease expired.
	PauseLimit time.Duration
	// Images configures the image store. If it is nil, Start pulls missing images,
	// and none is ever removed.
	Images *imagestore.Config
}

// Engine is a connection to a container engine. Its methods are safe for
// concurrent use; all attempts of a run share it.
type Engine struct {
	api      *client.Client
	requests *timeoutTransport // of api
	cfg      EngineConfig
	owner    owner
	warnings []string
	starts   chan struct{} // semaphore: limits concurrent starts
	pulls    singleflight.Group
	builds   singleflight.Group
	fills    singleflight.Group
	// preparing deduplicates the preparation of images.
	preparing singleflight.Group
	images    *imagestore.Store // nil without EngineConfig.Images
	heartbeat *heartbeat
	// hostSockets creates sockets for helpers if the engine is on this machine.
	hostSockets hostSockets

	mu             sync.Mutex
	openContainers map[*Container]struct{}
	helpers        map[string]helperBinary // by architecture
	filled         map[string]bool         // volumes known to contain their helper
	// unprepared has the names of prepared images that could not be created, or are not
	// needed.
	unprepared map[string]bool
}

// helperBinary is a helper program to copy into sandboxes.
type helperBinary struct {
	dir        string // directory of the file; empty for the embedded binary
	arch, hash string
}

// content reads the program. It is called to fill a volume and for each private copy.
func (b helperBinary) content() ([]byte, error) {
	content, hash, err := binaries.Load(b.dir, b.arch)
	if err == nil && hash != b.hash {
		err = fmt.Errorf("the helper for %s does not match its checksum; build it again with scripts/helper.sh", b.arch)
	}
	return content, err
}

// pingTimeout limits the first request.
const pingTimeout = 10 * time.Second

// Open connects to the engine. If no engine answers, the error is an *env.Error
// with status DaemonUnavailable and a hint.
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
	if cfg.PauseLimit <= 0 {
		cfg.PauseLimit = defaultPauseLimit
	}
	e := &Engine{
		cfg:            cfg,
		openContainers: make(map[*Container]struct{}),
		starts:         make(chan struct{}, cfg.MaxStarts),
		helpers:        make(map[string]helperBinary),
		filled:         make(map[string]bool),

		unprepared: make(map[string]bool),
	}
	ping := func(ctx context.Context) error { _, err := e.api.Ping(ctx); return err }
	e.heartbeat = newHeartbeat(heartbeatTimeout, ping, e.updatePaused)
	opts = append(opts, func(c *client.Client) error { // the last option, because the others configure the transport
		//nolint:errcheck,forcetypeassert // the options above leave an *http.Transport
		e.requests = wrapTransport(c.HTTPClient().Transport.(*http.Transport), e.heartbeat)
		return nil
	})
	var err error
	if e.api, err = client.NewClientWithOpts(opts...); err != nil {
		return nil, &env.Error{Status: env.DaemonUnavailable, Op: "set up engine client", Hint: hintDaemon, Err: err}
	}
	if e.owner, err = currentOwner(); err != nil {
		return nil, err
	}
	if v := os.Getenv(client.EnvOverrideAPIVersion); v != "" {
		e.warnings = append(e.warnings, fmt.Sprintf("%s is set to %s: mini uses this version of the engine's API, "+
			"not the newest that both support", client.EnvOverrideAPIVersion, v))
	}
	if err := e.ping(ctx); err != nil {
		e.disconnect()
		return nil, err
	}
	e.hostSockets.disabled = !isLocal(e.api.DaemonHost())
	if cfg.Images != nil {
		if e.images, err = e.openImageStore(ctx, *cfg.Images); err != nil {
			e.disconnect()
			return nil, err
		}
	}
	return e, nil
}

func (e *Engine) ping(ctx context.Context) error {
	pingCtx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	ping, err := e.api.Ping(pingCtx)
	op := "reach container engine at " + e.api.DaemonHost()
	if err != nil && ctx.Err() == nil && pingCtx.Err() != nil {
		return &env.Error{
			Status: env.DaemonUnavailable, Op: op, Hint: hintSilent,
			Err: fmt.Errorf("no answer in %s", pingTimeout),
		}
	}
	if err != nil {
		return engineError(ctx, env.DaemonUnavailable, op, err)
	}
	if ping.OSType != "" && ping.OSType != "linux" {
		return &env.Error{
			Status: env.DaemonUnavailable, Op: op,
			Hint: "switch it to Linux containers", Err: fmt.Errorf("it runs %s containers", ping.OSType),
		}
	}
	return nil
}

// Warnings returns messages for the user about this connection.
func (e *Engine) Warnings() []string { return e.warnings }

// Close closes the connection. Close the containers first: they keep running, but
// cannot be removed through this connection any more.
func (e *Engine) Close() error {
	e.disconnect()
	return e.hostSockets.close()
}

func (e *Engine) disconnect() {
	e.heartbeat.close()
	e.requests.next.CloseIdleConnections()
}

// addContainer registers a running container.
func (e *Engine) addContainer(c *Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.openContainers[c] = struct{}{}
}

// removeContainer unregisters a container.
func (e *Engine) removeContainer(c *Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.openContainers, c)
}

// helper returns the helper for an architecture.
func (e *Engine) helper(arch string) (helperBinary, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.helpers[arch]; ok {
		return b, nil
	}
	hash, err := binaries.Hash(e.cfg.HelperDir, arch)
	if err != nil {
		return helperBinary{}, err
	}
	b := helperBinary{dir: e.cfg.HelperDir, arch: arch, hash: hash}
	e.helpers[arch] = b
	return b, nil
}

// hasHelper reports whether there is a helper for one architecture at least. It asks for
// that of this machine first, because others may have to be built.
func (e *Engine) hasHelper() bool {
	return slices.ContainsFunc([]string{runtime.GOARCH, "amd64", "arm64"}, func(arch string) bool {
		_, err := e.helper(arch)
		return err == nil
	})
}
