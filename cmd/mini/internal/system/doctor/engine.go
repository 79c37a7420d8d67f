package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/docker/docker/client"
	"github.com/docker/go-units"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
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
		architecture(d, e.Platform), limits(d), e.memory(d), isolation(d),
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

// limits checks whether the engine can limit the resources of a sandbox.
func limits(d docker.Description) Check {
	if d.MemoryLimit && d.PIDsLimit && d.CPULimit {
		return Check{"limits", OK, "memory, processes and CPU time of a sandbox can be limited", ""}
	}
	return Check{
		"limits", Warn, "the engine cannot limit all of memory, processes and CPU time, so a sandbox can exhaust the machine",
		"enable these cgroup controllers in the kernel; for a rootless engine, delegate them to the user (systemd: Delegate=cpu memory pids)",
	}
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

// engineHost returns the address of the container engine, without a password. origin is
// " (DOCKER_HOST)" if that variable sets the address, and "" for the default address.
func engineHost() (host, origin string) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		if u, err := url.Parse(host); err == nil {
			host = u.Redacted()
		}
		return host, " (DOCKER_HOST)"
	}
	return client.DefaultDockerHost, ""
}

// dockerContext returns the current context of the docker command and its address. It returns
// empty strings for the default context, also if DOCKER_HOST overrides the context, and on errors.
func dockerContext(ctx context.Context) (name, host string) {
	out, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Name}} {{.Endpoints.docker.Host}}").Output()
	name, host, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || name == "default" { // DOCKER_HOST selects the default context
		return "", ""
	}
	return name, host
}

// sandbox starts and stops a sandbox without a container engine, because no single setting of
// the system shows whether a user may create namespaces.
func (e *checker) sandbox(ctx context.Context) []Check {
	if e.TrySandbox == nil {
		var checks []Check
		for _, name := range []string{"bash", "git"} {
			if _, err := exec.LookPath(name); err != nil && e.runsOnHost() {
				checks = append(checks, Check{"sandbox", Warn, name + " is missing", "install it: commands run in bash, and git creates the patches"})
			}
		}
		return checks
	}
	err := e.TrySandbox(ctx)
	envErr, isEnvErr := errors.AsType[*env.Error](err)
	switch {
	case errors.Is(err, binaries.ErrNotBuilt):
		return nil // reported by the helper check
	case isEnvErr:
		return []Check{{"sandbox", Fail, envErr.Op + ": " + envErr.Err.Error(), envErr.Hint}}
	case err != nil:
		return []Check{{"sandbox", Fail, err.Error(), ""}}
	}
	return []Check{
		{"sandbox", OK, e.Environment + " works: a sandbox was started and stopped", ""},
		{"bounds", Warn, bubblewrap.NoLimitsWarning, "use fewer workers, or --environment-class docker for untrusted tasks"},
	}
}
