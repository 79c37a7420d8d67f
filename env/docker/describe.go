package docker

import (
	"context"
	"strings"

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

// Describe asks the engine about itself. It is for people who look for what is
// wrong with it, and costs a moment of the engine's work.
func (e *Engine) Describe(ctx context.Context) (Description, error) {
	d := Description{Host: e.api.DaemonHost()}
	v, err := e.api.ServerVersion(ctx)
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
