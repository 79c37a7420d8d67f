package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/docker/go-units"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/internal/text"
)

// engineInfo caches facts about the engine that several probes need.
type engineInfo struct {
	once        sync.Once
	description docker.Description
	err         error
}

// describe returns the description of the engine. It queries the engine once, within
// requestTimeout.
func (e *checker) describe(ctx context.Context) (docker.Description, error) {
	e.engine.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		info := &e.engine
		engine, err := docker.Open(ctx, docker.EngineConfig{})
		if err != nil {
			info.err = err
			return
		}
		defer engine.Close() //nolint:errcheck // read only
		info.description, info.err = engine.Describe(ctx)
	})
	return e.engine.description, e.engine.err
}

// docker checks the container engine.
func (e *checker) docker(ctx context.Context) []Check {
	if configs.UsesCluster(e.Environment) {
		return nil
	}
	d, err := e.describe(ctx)
	if err != nil {
		return []Check{e.noEngine(ctx, err)}
	}
	return []Check{
		{"docker", OK, fmt.Sprintf("engine %s, API %s, at %s; %s", d.Version, d.API, d.Host, d.OS), ""},
		architecture(d, e.Platform), limits(d), storage(d), e.memory(d), isolation(d),
	}
}

// noEngine explains why no engine responds.
func (e *checker) noEngine(ctx context.Context, err error) Check {
	host, origin := engineHost()
	c := Check{"docker", e.engineSeverity(), "no container engine responds at " + host + origin, "start Docker, or set DOCKER_HOST to its address"}
	text := err.Error()
	name, address := dockerContext(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		c.Finding += fmt.Sprintf(": no response within %v", requestTimeout)
		c.Advice = "check the address and the engine, for example with docker version"
	case strings.HasPrefix(host, "ssh://"):
		c.Finding = "DOCKER_HOST is " + host + ", but mini does not support ssh"
		c.Advice = "forward the socket: ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST, and DOCKER_HOST=unix:///tmp/docker.sock"
	case errors.Is(err, os.ErrPermission) || strings.Contains(text, "permission denied"):
		c.Finding = "the container engine at " + host + origin + " denies access to this user"
		c.Advice = "add the user to its group and log in again: sudo usermod -aG docker $USER"
	case name != "" && address != "":
		c.Advice = fmt.Sprintf("the docker command uses the context %q; mini reads DOCKER_HOST: export DOCKER_HOST=%s", name, address)
	case strings.Contains(text, "parse docker host"):
		c.Finding = fmt.Sprintf("DOCKER_HOST is %q, which is not an address", host)
		c.Advice = "use unix:///var/run/docker.sock or tcp://HOST:2375, or unset it"
	case !strings.Contains(text, "nothing answers") && !strings.Contains(text, "no such file"):
		c.Finding += ": " + text
	}
	if e.runsOnHost() {
		c.Finding += "; the " + e.Environment + " environment needs none"
	}
	return c
}

// architecture checks the CPU architecture: the official images are for x86-64.
func architecture(d docker.Description, platform string) Check {
	text := "the engine's machine is " + d.Arch
	if d.Arch == "amd64" {
		return Check{"machine", OK, text + ", as the official images are", ""}
	}
	if platform == "linux/amd64" {
		return Check{"machine", Warn, text + "; images for amd64 are emulated, which is slow", "an amd64 machine is several times faster"}
	}
	return Check{
		"machine", Warn, text + ", but the official images of SWE-bench are for amd64",
		"emulate them with -c environment.platform=linux/amd64 (slow; the engine needs binfmt), or use other images",
	}
}

// limits checks whether the engine can limit the resources of a sandbox.
// isolation says whether the tests of an evaluation, which have SYS_ADMIN as in the official
// harness, can harm the machine.
func isolation(d docker.Description) Check {
	if d.Confined {
		return Check{"isolation", OK, "root in a container cannot become root of the machine", ""}
	}
	return Check{
		"isolation", Warn, "no AppArmor, SELinux or user namespaces: a hostile patch could become root of the machine during its evaluation",
		"evaluate patches of strangers on a machine of its own; see docs/verdicts.md",
	}
}

func limits(d docker.Description) Check {
	var missing []string
	for _, limit := range []struct {
		name string
		has  bool
	}{{"memory", d.MemoryLimit}, {"processes", d.PIDsLimit}, {"CPU time", d.CPULimit}} {
		if !limit.has {
			missing = append(missing, limit.name)
		}
	}
	text := "cgroup version " + d.Cgroup
	if d.Rootless {
		text += ", rootless"
	}
	switch {
	case len(missing) == 0 && !d.SwapLimit && d.Cgroup == "1":
		return Check{"limits", Warn, text + "; swap is not limited", "boot with swapaccount=1, or use cgroup version 2"}
	case len(missing) == 0:
		return Check{"limits", OK, text + "; memory, processes and CPU time of a sandbox can be limited", ""}
	case d.Rootless:
		return Check{"limits", Warn, text + "; not bounded: " + strings.Join(missing, ", "), "delegate these controllers to the user (systemd: Delegate=cpu memory pids), which needs cgroup version 2"}
	}
	return Check{"limits", Warn, text + "; not bounded: " + strings.Join(missing, ", "), "a sandbox can exhaust the machine; enable these controllers in the kernel"}
}

func storage(d docker.Description) Check {
	c := Check{"storage", OK, d.Storage, ""}
	switch d.Storage {
	case "fuse-overlayfs":
		c.Status, c.Finding = Warn, "fuse-overlayfs, which makes starting programs in containers slow"
		c.Advice = "configure overlay2; a rootless engine needs kernel 5.13 or newer for it"
	case "vfs":
		c.Status, c.Finding = Warn, "vfs, which copies the whole image for every container"
		c.Advice = "configure overlay2; with vfs, each container of a batch takes gigabytes"
	case "devicemapper", "aufs":
		c.Status, c.Advice = Warn, "it is no longer maintained; configure overlay2"
	}
	return c
}

// memory checks whether the sandboxes of all workers fit into memory, and whether there are enough
// processors.
func (e *checker) memory(d docker.Description) Check {
	text := fmt.Sprintf("%s with %d processors and %s of memory", text.Count(e.Workers, "worker"), d.CPUs, units.BytesSize(float64(d.Memory)))
	if e.MemoryBytes <= 0 || d.Memory <= 0 {
		return Check{"workers", OK, text, ""}
	}
	fits := max(1, int(d.Memory/e.MemoryBytes))
	switch {
	case e.Workers > fits:
		return Check{
			"workers", Warn, fmt.Sprintf("%s: their sandboxes may take %s each", text, units.BytesSize(float64(e.MemoryBytes))),
			fmt.Sprintf("this is seldom all used at once; to be safe, use -w %d or a lower -c environment.memory", fits),
		}
	case d.CPUs > 0 && e.Workers > 4*d.CPUs:
		return Check{"workers", Warn, text, "commands may time out because of too few processors; use fewer workers"}
	}
	return Check{"workers", OK, text, ""}
}

// helper checks the helper program for sandboxes.
func (e *checker) helper(ctx context.Context) []Check {
	if e.Environment == "local" || configs.UsesCluster(e.Environment) { // the check of a pod includes it
		return nil
	}
	arch := runtime.GOARCH
	if !e.runsOnHost() {
		if d, err := e.describe(ctx); err == nil && d.Arch != "" {
			arch = d.Arch
		}
		if _, rest, ok := strings.Cut(e.Platform, "/"); ok {
			arch, _, _ = strings.Cut(rest, "/")
		}
	}
	hash, err := binaries.Hash(e.HelperDir, arch)
	switch {
	case errors.Is(err, binaries.ErrNotBuilt) && e.HelperDir == "":
		return []Check{{"helper", Fail, err.Error(), ""}}
	case errors.Is(err, binaries.ErrNotBuilt):
		return []Check{{"helper", Fail, "no " + binaries.Name(arch) + " in " + e.HelperDir, "build it with scripts/helper.sh, or remove environment.helper_dir"}}
	case err != nil:
		return []Check{{"helper", Fail, err.Error(), "use an engine, or a platform, of amd64 or arm64"}}
	}
	return []Check{{"helper", OK, fmt.Sprintf("for %s, %.12s", arch, hash), ""}}
}

// firstNames lists up to three names, and the number of the others.
func firstNames(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
