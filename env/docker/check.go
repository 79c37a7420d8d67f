package docker

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"

	"github.com/minibench/mini/env"
)

// Network modes that the engine defines.
const (
	networkNone      = "none"
	networkBridge    = "bridge"
	networkHost      = "host"
	networkContainer = "container:"
)

// Check asks the engine whether it has the network, the runtime, the processors
// and the mounts of the configuration. One call replaces a failure in every
// container. The error joins all *ConfigError values, those of Validate included
// (see ConfigErrors), or is an *env.Error if the engine does not answer. Check
// does not look at the image.
func (e *Engine) Check(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	info, err := e.api.Info(ctx)
	if err != nil {
		return engineError(ctx, env.DaemonUnavailable, "get engine info", err)
	}
	var m configErrors
	if err := e.checkNetwork(ctx, c.Network, &m); err != nil {
		return err
	}
	checkRuntime(c.Runtime, info, &m)
	if info.NCPU > 0 && c.CPUs > float64(info.NCPU) {
		m.add("cpus", "%v exceeds the %d processors of the engine's machine", c.CPUs, info.NCPU)
	}
	if e.sharesFiles(info) {
		for _, mount := range c.Mounts {
			e.checkSource(mount, c.Force, &m)
		}
	}
	return errors.Join(m...)
}

func (e *Engine) checkNetwork(ctx context.Context, mode string, m *configErrors) error {
	var err error
	name, shared := strings.CutPrefix(mode, networkContainer)
	switch {
	case mode == networkNone || mode == networkHost:
		return nil
	case shared:
		var found container.InspectResponse
		found, err = e.api.ContainerInspect(ctx, name)
		if err == nil && (found.State == nil || !found.State.Running) {
			m.add("network", "container %.60q is not running; start it first", name)
		}
	default:
		_, err = e.api.NetworkInspect(ctx, name, network.InspectOptions{})
	}
	switch {
	case errdefs.IsNotFound(err) && shared:
		m.add("network", "the engine has no container %.60q", name)
	case errdefs.IsNotFound(err):
		m.add("network", `the engine has no network %.60q; use "none" or "host", or create it with docker network create`, name)
	case err != nil:
		return engineError(ctx, env.DaemonUnavailable, "inspect network "+mode, err)
	}
	return nil
}

// hasNetwork reports whether a container with this network mode can reach any
// address. It returns true if the engine does not answer: a command that fails is
// better than one that is never tried.
func (e *Engine) hasNetwork(ctx context.Context, mode string) bool {
	const maxDepth = 8 // containers that share the network of another container
	for range maxDepth {
		name, shared := strings.CutPrefix(mode, networkContainer)
		if !shared {
			break
		}
		found, err := e.api.ContainerInspect(ctx, name)
		if err != nil || found.HostConfig == nil {
			return true
		}
		mode = string(found.HostConfig.NetworkMode)
	}
	switch mode {
	case networkNone:
		return false
	case networkBridge, networkHost, "default":
		return true
	}
	// The network "none" also has an id, so compare drivers.
	found, err := e.api.NetworkInspect(ctx, mode, network.InspectOptions{})
	return err != nil || found.Driver != "null"
}

// checkRuntime checks the name against the runtimes in the engine's settings.
// Newer engines also find runtimes by the names of their containerd shims.
func checkRuntime(name string, info system.Info, m *configErrors) {
	_, known := info.Runtimes[name]
	if name == "" || known || len(info.Runtimes) == 0 || strings.HasPrefix(name, "io.containerd.") || filepath.IsAbs(name) {
		return
	}
	m.add("runtime", "the engine has no runtime %.60q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", "))
}

// sharesFiles reports whether the engine sees the same files as this process: it
// runs on this machine, and this process does not run in a container.
func (e *Engine) sharesFiles(info system.Info) bool {
	host, err := os.Hostname()
	return err == nil && strings.HasPrefix(e.api.DaemonHost(), "unix://") && info.Name == host
}

// checkSource checks the source of a mount, with symbolic links resolved.
func (e *Engine) checkSource(t Mount, force bool, m *configErrors) {
	real, err := filepath.EvalSymlinks(t.Source)
	switch {
	case errors.Is(err, os.ErrNotExist):
		m.add("mounts", "%.80q does not exist; create it first", t.Source)
	case err != nil || force:
	default:
		all := slices.Clone(engineSockets)
		for _, s := range slices.Concat(engineSockets, []string{strings.TrimPrefix(e.api.DaemonHost(), "unix://")}) {
			if resolved, err := filepath.EvalSymlinks(s); err == nil {
				all = append(all, resolved)
			}
		}
		before := len(*m)
		t.refuseUnsafe(m, real, all)
		// Other sockets: engine sockets at an unknown path, and those of other services.
		if info, err := os.Stat(real); err == nil && info.Mode().Type() == os.ModeSocket && len(*m) == before {
			m.add("mounts", "%.80q is a socket: commands could talk to the service behind it; set environment.unsafe to accept that", t.Source)
		}
	}
}
