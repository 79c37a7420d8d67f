package docker

import (
	"context"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
)

// Description is what an engine says of itself and of its machine.
type Description struct {
	Host       string // the address it was reached at
	Version    string // of the engine
	API        string // the version spoken with it
	OS         string // of its machine, as "Debian GNU/Linux 12"
	Arch       string // in Go's names
	CPUs       int
	Memory     int64 // bytes, of its machine
	Storage    string
	RootDir    string // where it keeps images, on its machine
	Cgroup     string // "1", "2" or empty
	Rootless   bool
	Containers int // that run now
	// What containers can be bounded in.
	MemoryLimit, SwapLimit, PIDsLimit, CPULimit bool
}

// describer is what a real client can say beyond what sandboxes need.
type describer interface {
	ServerVersion(ctx context.Context) (types.Version, error)
}

var _ describer = (*client.Client)(nil)

// Describe asks the engine about itself. It is for people who look for what is
// wrong with it, and costs a moment of the engine's work.
func (e *Engine) Describe(ctx context.Context) (Description, error) {
	d := Description{Host: e.api.DaemonHost()}
	asked, ok := e.api.(describer)
	if !ok {
		return d, nil
	}
	v, err := asked.ServerVersion(ctx)
	if err != nil {
		return d, failure(ctx, env.DaemonUnavailable, "ask engine for its version", err)
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return d, failure(ctx, env.DaemonUnavailable, "ask engine about itself", err)
	}
	d.Version, d.API, d.Arch = v.Version, e.api.ClientVersion(), v.Arch
	d.OS, d.CPUs, d.Memory = info.OperatingSystem, info.NCPU, info.MemTotal
	d.Storage, d.RootDir, d.Cgroup, d.Containers = info.Driver, info.DockerRootDir, info.CgroupVersion, info.ContainersRunning
	d.MemoryLimit, d.SwapLimit, d.PIDsLimit, d.CPULimit = info.MemoryLimit, info.SwapLimit, info.PidsLimit, info.CPUCfsQuota
	for _, option := range info.SecurityOptions {
		if strings.Contains(option, "name=rootless") {
			d.Rootless = true
		}
	}
	return d, nil
}

// Abandoned are the names of the containers that Sweep would remove.
func (e *Engine) Abandoned(ctx context.Context) ([]string, error) {
	list, err := e.api.ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", labelOwner)),
	})
	if err != nil {
		return nil, failure(ctx, env.StartFailed, "list containers", err)
	}
	var names []string
	for _, c := range list {
		if e.abandoned(c, time.Now()) {
			names = append(names, displayName(c))
		}
	}
	return names, nil
}
