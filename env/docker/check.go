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

// Network modes that have a meaning of their own.
const (
	networkNone      = "none"
	networkBridge    = "bridge"
	networkHost      = "host"
	networkContainer = "container:"
)

// Check asks the engine, once, what every container of a configuration would
// find out by itself: whether it has the network, the runtime, the processors
// and the mounts. It returns all mistakes, those of Validate too (see
// Mistakes), or an *env.Error when the engine does not answer. The image is
// not looked at.
func (e *Engine) Check(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	facts, err := e.api.Info(ctx)
	if err != nil {
		return failure(ctx, env.DaemonUnavailable, "ask engine about itself", err)
	}
	var m mistakes
	if err := e.checkNetwork(ctx, c.Network, &m); err != nil {
		return err
	}
	checkRuntime(c.Runtime, facts, &m)
	if facts.NCPU > 0 && c.CPUs > float64(facts.NCPU) {
		m.add("cpus", "%v are more than the engine's machine has; the most is %d", c.CPUs, facts.NCPU)
	}
	if e.sharesFiles(facts) {
		for _, mount := range c.Mounts {
			e.checkSource(mount, c.Force, &m)
		}
	}
	return errors.Join(m...)
}

func (e *Engine) checkNetwork(ctx context.Context, mode string, m *mistakes) error {
	var err error
	name, shared := strings.CutPrefix(mode, networkContainer)
	switch {
	case mode == networkNone || mode == networkHost:
		return nil
	case shared:
		var found container.InspectResponse
		found, err = e.api.ContainerInspect(ctx, name)
		if err == nil && (found.State == nil || !found.State.Running) {
			m.add("network", "container %.60q does not run; start it first", name)
		}
	default:
		_, err = e.api.NetworkInspect(ctx, name, network.InspectOptions{})
	}
	switch {
	case errdefs.IsNotFound(err) && shared:
		m.add("network", "the engine has no container %.60q", name)
	case errdefs.IsNotFound(err):
		m.add("network", `the engine has no network %.60q; "none" and "host" always work, and others are made with docker network create`, name)
	case err != nil:
		return failure(ctx, env.DaemonUnavailable, "ask engine for network "+mode, err)
	}
	return nil
}

// connected says whether a container with this network mode reaches anything.
// Where the engine does not say, it is taken to do so: better a command that
// fails than one that is not tried.
func (e *Engine) connected(ctx context.Context, mode string) bool {
	const most = 8 // containers that share the network of containers
	for range most {
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
	// The network that is none has an id too.
	found, err := e.api.NetworkInspect(ctx, mode, network.InspectOptions{})
	return err != nil || found.Driver != "null"
}

// checkRuntime knows the runtimes of the engine's settings. Newer engines find
// others by the names of their shims.
func checkRuntime(name string, facts system.Info, m *mistakes) {
	_, known := facts.Runtimes[name]
	if name == "" || known || len(facts.Runtimes) == 0 || strings.HasPrefix(name, "io.containerd.") || filepath.IsAbs(name) {
		return
	}
	m.add("runtime", "the engine has no %.60q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(facts.Runtimes)), ", "))
}

// sharesFiles says that the engine sees the files that this process sees: it is on
// this machine, and not around the container that this process may run in.
func (e *Engine) sharesFiles(facts system.Info) bool {
	host, err := os.Hostname()
	return err == nil && strings.HasPrefix(e.api.DaemonHost(), "unix://") && facts.Name == host
}

// checkSource looks at what is to be mounted, and at where links in its path
// lead to.
func (e *Engine) checkSource(t Mount, force bool, m *mistakes) {
	real, err := filepath.EvalSymlinks(t.Source)
	switch {
	case errors.Is(err, os.ErrNotExist):
		m.add("mounts", "%.80q does not exist; make it first", t.Source)
	case err != nil || force:
	default:
		all := slices.Clone(sockets)
		for _, s := range slices.Concat(sockets, []string{strings.TrimPrefix(e.api.DaemonHost(), "unix://")}) {
			if at, err := filepath.EvalSymlinks(s); err == nil {
				all = append(all, at)
			}
		}
		before := len(*m)
		t.distrust(m, real, all)
		// Those that have no name of their own here, and those of other services.
		if at, err := os.Stat(real); err == nil && at.Mode().Type() == os.ModeSocket && len(*m) == before {
			m.add("mounts", "%.80q is a socket: commands could talk to what listens there; set environment.unsafe to accept that", t.Source)
		}
	}
}
