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

// Check asks the engine whether it has the network, the runtime and the processors of
// the configuration, and checks the mounts if the engine runs on this machine. Without
// Check, what is missing would show only when containers fail to start. The error joins
// *env.ConfigError values (see env.ConfigErrors): those of Validate if there are any, else those
// that Check finds. It is an *env.Error if the engine does not answer, or the cause of
// ctx. Check does not check the image.
func (e *Engine) Check(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	info, err := e.api.Info(ctx)
	if err != nil {
		return engineError(ctx, env.DaemonUnavailable, "get engine info", err)
	}
	var errs env.ConfigErrorList
	if err := e.checkNetwork(ctx, c.Network, &errs); err != nil {
		return err
	}
	checkRuntime(c.Runtime, info, &errs)
	if info.NCPU > 0 && c.CPUs > float64(info.NCPU) {
		errs.Add("cpus", "%v exceeds the %d processors of the engine's machine", c.CPUs, info.NCPU)
	}
	if e.sharesFiles(info) {
		for _, mount := range c.Mounts {
			e.checkSource(mount, c.AllowUnsafe, &errs)
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) checkNetwork(ctx context.Context, mode string, errs *env.ConfigErrorList) error {
	var err error
	name, shared := strings.CutPrefix(mode, networkContainer)
	switch {
	case mode == networkNone || mode == networkHost:
		return nil
	case shared:
		var found container.InspectResponse
		found, err = e.api.ContainerInspect(ctx, name)
		if err == nil && (found.State == nil || !found.State.Running) {
			errs.Add("network", "container %.60q is not running; start it first", name)
		}
	default:
		_, err = e.api.NetworkInspect(ctx, name, network.InspectOptions{})
	}
	switch {
	case errdefs.IsNotFound(err) && shared:
		errs.Add("network", "the engine has no container %.60q", name)
	case errdefs.IsNotFound(err):
		errs.Add("network", `the engine has no network %.60q; use "none" or "host", or create it with docker network create`, name)
	case err != nil:
		return engineError(ctx, env.DaemonUnavailable, "inspect network "+mode, err)
	}
	return nil
}

// hasNetwork reports whether a container with this network mode can reach addresses
// outside itself. It returns true if the engine does not answer: a command that fails is
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
func checkRuntime(name string, info system.Info, errs *env.ConfigErrorList) {
	_, known := info.Runtimes[name]
	if name == "" || known || len(info.Runtimes) == 0 || strings.HasPrefix(name, "io.containerd.") || filepath.IsAbs(name) {
		return
	}
	errs.Add("runtime", "the engine has no runtime %.60q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", "))
}

// sharesFiles reports whether the engine sees the same files as this process: it
// runs on this machine, and this process does not run in a container.
func (e *Engine) sharesFiles(info system.Info) bool {
	host, err := os.Hostname()
	return err == nil && strings.HasPrefix(e.api.DaemonHost(), "unix://") && info.Name == host
}

// checkSource checks the source of a mount, with symbolic links resolved.
func (e *Engine) checkSource(m Mount, force bool, errs *env.ConfigErrorList) {
	resolvedSource, err := filepath.EvalSymlinks(m.Source)
	switch {
	case errors.Is(err, os.ErrNotExist):
		errs.Add("mounts", "%.80q does not exist; create it first", m.Source)
	case err != nil || force:
	default:
		sockets := slices.Clone(engineSockets)
		for _, s := range slices.Concat(engineSockets, []string{strings.TrimPrefix(e.api.DaemonHost(), "unix://")}) {
			if resolved, err := filepath.EvalSymlinks(s); err == nil {
				sockets = append(sockets, resolved)
			}
		}
		before := len(*errs)
		m.refuseUnsafe(errs, resolvedSource, sockets)
		// Other sockets: engine sockets at an unknown path, and those of other services.
		if info, err := os.Stat(resolvedSource); err == nil && info.Mode().Type() == os.ModeSocket && len(*errs) == before {
			errs.Add("mounts", "%.80q is a socket: commands could talk to the service behind it; set environment.unsafe to accept that", m.Source)
		}
	}
}
