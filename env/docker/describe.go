package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
)

// Description is information about an engine and its machine.
type Description struct {
	Host    string // address of the engine
	Version string // of the engine
	API     string // negotiated API version
	OS      string // of the machine, for example "Debian GNU/Linux 12"
	Arch    string // GOARCH
	CPUs    int
	Memory  int64  // bytes of the machine
	RootDir string // data directory of the engine, on its machine
	// Confined says that commands with SYS_ADMIN cannot become root of the machine, bugs in
	// the kernel aside.
	Confined   bool
	Containers int // number of running containers
	// The resource limits that the engine supports.
	MemoryLimit, PIDsLimit, CPULimit bool
}

// Describe returns information about the engine, for diagnostics.
func (e *Engine) Describe(ctx context.Context) (Description, error) {
	d := Description{Host: e.api.DaemonHost()}
	v, err := e.api.ServerVersion(ctx)
	if err != nil {
		return d, engineError(ctx, env.DaemonUnavailable, "get engine version", err)
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return d, engineError(ctx, env.DaemonUnavailable, "get engine info", err)
	}
	d.Version, d.API, d.Arch = v.Version, e.api.ClientVersion(), v.Arch
	d.OS, d.CPUs, d.Memory = info.OperatingSystem, info.NCPU, info.MemTotal
	d.RootDir, d.Containers = info.DockerRootDir, info.ContainersRunning
	d.MemoryLimit, d.PIDsLimit, d.CPULimit = info.MemoryLimit, info.PidsLimit, info.CPUCfsQuota
	d.Confined = isConfined(info.SecurityOptions)
	return d, nil
}

// confiningOptions are prefixes of the engine's security options that confine
// commands with SYS_ADMIN. AppArmor and SELinux forbid mounting; with the others,
// root in a container is not root on the machine.
var confiningOptions = []string{"name=apparmor", "name=selinux", "name=userns", "name=rootless"}

func isConfined(options []string) bool {
	return slices.ContainsFunc(options, func(option string) bool {
		return slices.ContainsFunc(confiningOptions, func(name string) bool { return strings.HasPrefix(option, name) })
	})
}
