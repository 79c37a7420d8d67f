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

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/runner/report"
)

// shared is what several probes want of the engine; it is asked once.
type shared struct {
	once  sync.Once
	found docker.Description
	left  []string // containers of minis that are dead
	err   error
}

// describe asks the engine, within askTimeout.
func (e *examination) describe(ctx context.Context) (docker.Description, error) {
	e.engine.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		s := &e.engine
		engine, err := docker.Open(ctx, docker.EngineConfig{})
		if err != nil {
			s.err = err
			return
		}
		defer engine.Close() //nolint:errcheck // nothing was written through it
		if s.found, s.err = engine.Describe(ctx); s.err != nil {
			return
		}
		var left []docker.Leftover
		left, s.err = engine.Cleanable(ctx, docker.Thorough{})
		for _, l := range left {
			s.left = append(s.left, l.Name)
		}
	})
	return e.engine.found, e.engine.err
}

// docker is about the container engine.
func (e *examination) docker(ctx context.Context) []Check {
	d, err := e.describe(ctx)
	if err != nil {
		return []Check{e.noEngine(err)}
	}
	checks := []Check{
		{"docker", OK, fmt.Sprintf("engine %s, API %s, at %s; %s", d.Version, d.API, d.Host, d.OS), ""},
		e.api(d), architecture(d, e.Platform), limits(d), storage(d), e.room(d),
	}
	if n := len(e.engine.left); n > 0 {
		checks = append(checks, Check{
			"leftovers", Warn, fmt.Sprintf("%s left by minis that are dead: %s", report.Count(n, "container"), some(e.engine.left)),
			"mini clean removes them, and so does the next mini bench",
		})
	}
	return checks
}

// noEngine says why no engine answers, as far as that can be told.
func (e *examination) noEngine(err error) Check {
	host, where := engineHost()
	c := Check{"docker", e.needed(), "no container engine answers at " + host + where, "start Docker, or set DOCKER_HOST to where it listens"}
	text := err.Error()
	name, address := dockerContext()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		c.Finding += fmt.Sprintf(": nothing within %v", askTimeout)
		c.Advice = "is the address right, and the engine well? docker version asks the same of it"
	case strings.HasPrefix(host, "ssh://"):
		c.Finding = "DOCKER_HOST is " + host + ", and mini does not speak ssh"
		c.Advice = "forward the socket: ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST, and DOCKER_HOST=unix:///tmp/docker.sock"
	case errors.Is(err, os.ErrPermission) || strings.Contains(text, "permission denied"):
		c.Finding = "the container engine at " + host + where + " does not let this user in"
		c.Advice = "add the user to its group, and log in again: sudo usermod -aG docker $USER"
	case name != "" && address != "":
		c.Advice = fmt.Sprintf("the docker command uses the context %q; mini reads DOCKER_HOST: export DOCKER_HOST=%s", name, address)
	case strings.Contains(text, "parse docker host"):
		c.Finding = fmt.Sprintf("DOCKER_HOST is %q, which is no address", host)
		c.Advice = "it looks like unix:///var/run/docker.sock or tcp://HOST:2375; or unset it"
	case !strings.Contains(text, "annot connect") && !strings.Contains(text, "no such file"):
		c.Finding += ": " + text
	}
	if e.onHost() {
		c.Finding += "; the " + e.Environment + " environment needs none"
	}
	return c
}

func (e *examination) api(d docker.Description) Check {
	if v := os.Getenv("DOCKER_API_VERSION"); v != "" {
		return Check{
			"api", Warn, "DOCKER_API_VERSION is set, so version " + v + " is spoken and not the newest that both know",
			"unset it, unless something else needs it",
		}
	}
	return Check{"api", OK, "version " + d.API + ", agreed on with the engine", ""}
}

// architecture is about images: the official ones are for x86-64.
func architecture(d docker.Description, platform string) Check {
	text := "the engine's machine is " + d.Arch
	if d.Arch == "amd64" {
		return Check{"machine", OK, text + ", as the official images are", ""}
	}
	if platform == "linux/amd64" {
		return Check{"machine", Warn, text + "; images for amd64 are emulated there, which is slow", "a machine with amd64 does the same in a fraction of the time"}
	}
	return Check{
		"machine", Warn, text + ", and the official images of SWE-bench are for amd64",
		"-c environment.platform=linux/amd64 has them emulated (slow, and the engine needs binfmt for it); or name other images",
	}
}

// limits is about what keeps a sandbox from taking the machine.
func limits(d docker.Description) Check {
	var missing []string
	for _, l := range []struct {
		name string
		has  bool
	}{{"memory", d.MemoryLimit}, {"processes", d.PIDsLimit}, {"processor time", d.CPULimit}} {
		if !l.has {
			missing = append(missing, l.name)
		}
	}
	text := "cgroup version " + d.Cgroup
	if d.Rootless {
		text += ", rootless"
	}
	switch {
	case len(missing) == 0 && !d.SwapLimit && d.Cgroup == "1":
		return Check{"limits", Warn, text + "; swap is not bounded", "boot with swapaccount=1, or use cgroup version 2"}
	case len(missing) == 0:
		return Check{"limits", OK, text + "; memory, processes and processor time of a sandbox can be bounded", ""}
	case d.Rootless:
		return Check{"limits", Warn, text + "; not bounded: " + strings.Join(missing, ", "), "delegate these controllers to the user (systemd: Delegate=cpu memory pids), which needs cgroup version 2"}
	}
	return Check{"limits", Warn, text + "; not bounded: " + strings.Join(missing, ", "), "a sandbox can take the whole machine; enable these controllers in the kernel"}
}

func storage(d docker.Description) Check {
	c := Check{"storage", OK, d.Storage, ""}
	switch d.Storage {
	case "fuse-overlayfs":
		c.Mark, c.Finding = Warn, "fuse-overlayfs, which makes starting any program in a container slow"
		c.Advice = "where the kernel has overlay2 for this user (5.13 and newer, also rootless), configure that"
	case "vfs":
		c.Mark, c.Finding = Warn, "vfs, which copies the whole image for every container"
		c.Advice = "configure overlay2: each container of a batch would take gigabytes"
	case "devicemapper", "aufs":
		c.Mark, c.Advice = Warn, "it is no longer maintained; configure overlay2"
	}
	return c
}

// room is whether so many sandboxes fit into the machine's memory at once.
func (e *examination) room(d docker.Description) Check {
	text := fmt.Sprintf("%s with %d processors and %s of memory", report.Count(e.Workers, "worker"), d.CPUs, units.BytesSize(float64(d.Memory)))
	if e.MemoryBytes <= 0 || d.Memory <= 0 {
		return Check{"workers", OK, text, ""}
	}
	fits := max(1, int(d.Memory/e.MemoryBytes))
	switch {
	case e.Workers > fits:
		return Check{
			"workers", Warn, fmt.Sprintf("%s: their sandboxes may take %s each", text, units.BytesSize(float64(e.MemoryBytes))),
			fmt.Sprintf("they seldom all do; -w %d is safe, and so is less in -c environment.memory", fits),
		}
	case d.CPUs > 0 && e.Workers > 4*d.CPUs:
		return Check{"workers", Warn, text, "commands that time out for want of processors cost results; fewer workers may be quicker"}
	}
	return Check{"workers", OK, text, ""}
}

// helper is about the program that mini puts into containers.
func (e *examination) helper(ctx context.Context) []Check {
	if e.Environment == "local" {
		return nil
	}
	arch := runtime.GOARCH
	if !e.onHost() {
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
		return []Check{{"helper", Fail, "this mini was built without the helper for its sandboxes", "build it with make build, or take a released binary"}}
	case errors.Is(err, binaries.ErrNotBuilt):
		return []Check{{"helper", Fail, "no " + binaries.Name(arch) + " in " + e.HelperDir, "scripts/helper.sh builds it; or leave environment.helper_dir away"}}
	case err != nil:
		return []Check{{"helper", Fail, err.Error(), "use an engine, or a platform, of amd64 or arm64"}}
	}
	return []Check{{"helper", OK, fmt.Sprintf("for %s, %.12s", arch, hash), ""}}
}

// some are a few of many names.
func some(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
