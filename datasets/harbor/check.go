package harbor

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// maxSteps bounds the steps of a task, maxTimeout the times in task.toml, in seconds.
const (
	maxSteps   = 1000
	maxTimeout = 30 * 24 * 3600
)

var (
	taskName = lazyregexp.New(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)
	stepName = lazyregexp.New(`^[A-Za-z0-9][\w.-]*$`)
	userName = lazyregexp.New(`^[\w.-]+(:[\w.-]+)?$`)
)

// check returns an error for values that are wrong, and for what mini does not run.
func (c Config) check() error {
	if v := c.Version(); !isKnownVersion(v) {
		return fmt.Errorf("schema_version %.20q: mini reads 1.0 to 1.4", v)
	}
	if n := c.Info.Name; n != "" && (!taskName.MatchString(n) || strings.Contains(n, "..")) {
		return fmt.Errorf("task.name: %.80q is not of the form org/name", n)
	}
	if c.Strategy != "" && c.Strategy != "mean" && c.Strategy != "final" {
		return fmt.Errorf("multi_step_reward_strategy: %.40q is neither mean nor final", c.Strategy)
	}
	if err := c.Environment.check("environment"); err != nil {
		return err
	}
	phases := []StepConfig{{Agent: c.Agent, Verifier: c.Verifier, Artifacts: c.Artifacts}}
	seen := map[string]bool{}
	if len(c.Steps) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	for i, s := range c.Steps {
		if !stepName.MatchString(s.Name) || seen[s.Name] {
			return fmt.Errorf("steps[%d].name: %.80q is repeated, or not the name of a folder", i, s.Name)
		}
		seen[s.Name] = true
		phases = append(phases, s.inherit(c))
	}
	for _, s := range phases {
		if err := s.check(); err != nil {
			return err
		}
	}
	return errors.Join(c.Environment.Healthcheck.check(), checkArtifacts(c.Artifacts))
}

func (s StepConfig) check() error {
	if s.Verifier.Mode != "" && s.Verifier.Mode != modeShared && s.Verifier.Mode != modeSeparate {
		return fmt.Errorf("verifier.environment_mode: %.40q is neither shared nor separate", s.Verifier.Mode)
	}
	if s.Verifier.Mode == modeShared && s.Verifier.Environment != nil {
		return errors.New("verifier.environment: a shared verifier has no environment of its own")
	}
	if v := s.Verifier.Environment; v != nil {
		if err := v.check("verifier.environment"); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		name string
		Phase
	}{{"agent", s.Agent}, {"verifier", s.Verifier.Phase}} {
		if err := checkNetwork(p.name, p.NetworkMode, p.AllowedHosts); err != nil {
			return err
		}
		if p.User != "" && !userName.MatchString(string(p.User)) {
			return fmt.Errorf("%s.user: %.40q is not the name of a user", p.name, p.User)
		}
		if p.Timeout != nil && !isTime(*p.Timeout) {
			return fmt.Errorf("%s.timeout_sec: %v is not a number of seconds", p.name, *p.Timeout)
		}
	}
	for _, collect := range s.Verifier.Collect {
		switch {
		case collect.Command == "":
			return errors.New("verifier.collect: command is missing")
		case collect.User != "" && !userName.MatchString(string(collect.User)):
			return fmt.Errorf("verifier.collect: user: %.40q is not the name of a user", collect.User)
		case collect.Timeout != nil && !isTime(*collect.Timeout):
			return fmt.Errorf("verifier.collect: timeout_sec: %v is not a number of seconds", *collect.Timeout)
		}
		if err := checkService("verifier.collect", collect.Service); err != nil {
			return err
		}
	}
	return errors.Join(s.Healthcheck.check(), checkArtifacts(s.Artifacts))
}

func (e Environment) check(key string) error {
	switch {
	case e.OS != "" && !strings.EqualFold(e.OS, "linux"):
		return fmt.Errorf("%s.os: %.20q: mini runs Linux containers only", key, e.OS)
	case e.GPUs > 0 || len(e.GPUTypes) > 0:
		return fmt.Errorf("%s.gpus: mini gives containers no GPUs", key)
	case len(e.TPU) > 0:
		return fmt.Errorf("%s.tpu: mini gives containers no TPUs", key)
	case e.CPUs != nil && !(*e.CPUs > 0 && *e.CPUs <= 1024):
		return fmt.Errorf("%s.cpus: %v is not a number of processors", key, *e.CPUs)
	case e.MemoryMB != nil && (*e.MemoryMB < 6 || *e.MemoryMB > 1<<24):
		return fmt.Errorf("%s.memory_mb: %d is not a size of memory", key, *e.MemoryMB)
	case e.BuildTimeout != 0 && !isTime(e.BuildTimeout):
		return fmt.Errorf("%s.build_timeout_sec: %v is not a number of seconds", key, e.BuildTimeout)
	case e.Workdir != "" && !path.IsAbs(e.Workdir):
		return fmt.Errorf("%s.workdir: %.80q is not an absolute path", key, e.Workdir)
	}
	if _, err := parseSize(e.OldMemory); err != nil {
		return fmt.Errorf("%s.memory: %w", key, err)
	}
	if _, err := parseSize(e.OldStorage); err != nil {
		return fmt.Errorf("%s.storage: %w", key, err)
	}
	return checkNetwork(key, e.NetworkMode, e.AllowedHosts)
}

func checkNetwork(key, mode string, hosts []string) error {
	if !isNetworkMode(mode) {
		return fmt.Errorf("%s.network_mode: %.40q is none of public, no-network, allowlist", key, mode)
	}
	if mode == networkAllowlist || len(hosts) > 0 {
		return fmt.Errorf("%s.network_mode: mini has no allowlist of hosts; it runs public and no-network tasks", key)
	}
	return nil
}

// IsOffline reports whether a phase has no network.
func (e Environment) IsOffline(p Phase) bool {
	if mode := cmp.Or(p.NetworkMode, e.NetworkMode); mode != "" {
		return mode == networkNone
	}
	return e.Internet != nil && !*e.Internet
}

func (h *Healthcheck) check() error {
	if h == nil {
		return nil
	}
	if h.Command == "" {
		return errors.New("healthcheck.command is missing")
	}
	for _, n := range []*float64{h.Interval, h.Timeout, &h.StartPeriod, h.StartInterval} {
		if n != nil && (*n != 0 && !isTime(*n)) {
			return fmt.Errorf("healthcheck: %v is not a number of seconds", *n)
		}
	}
	if h.Retries != nil && (*h.Retries < 0 || *h.Retries > 10_000) {
		return fmt.Errorf("healthcheck.retries: %d", *h.Retries)
	}
	return nil
}

func checkService(key, service string) error {
	if service != "" && service != "main" {
		return fmt.Errorf("%s: service %.40q: mini runs one container, main", key, service)
	}
	return nil
}

func checkArtifacts(all []Artifact) error {
	for _, a := range all {
		if err := checkService("artifacts", a.Service); err != nil {
			return err
		}
		if d := a.Destination; d != "" && !filepath.IsLocal(d) {
			return fmt.Errorf("artifacts: the destination %.80q is outside the folder of artifacts", d)
		}
	}
	return nil
}

func isTime(n float64) bool { return n > 0 && n <= maxTimeout && !math.IsNaN(n) }
