package docker

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/go-units"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// The smallest limits with which a sandbox works.
const (
	minMemory = 16 << 20 // bytes: the helper, a shell and a command
	minPIDs   = 16       // the helper's threads, a shell and a pipeline
)

// Validate returns all errors that can be found without an engine, joined, as
// *env.ConfigError values. See Check for the others.
func (c Config) Validate() error {
	var errs env.ConfigErrorList
	if c.Image == "" {
		errs.Add("image", "it is missing")
	}
	if c.Platform != "" && !platformPattern.MatchString(c.Platform) {
		errs.Add("platform", "%.60q is not of the form linux/amd64", c.Platform)
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		errs.Add("cwd", "%.80q is not absolute; start it with /", c.Dir)
	}
	if c.User != "" && !userPattern.MatchString(c.User) {
		errs.Add("user", `%.60q is not a user; write "name", "1000" or "1000:1000"`, c.User)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(c.Env[name], "\x00") {
			errs.Add("env", "%.60q is not a valid name and value of an environment variable", name)
		}
	}
	if len(c.Interpreter) > 0 && c.Interpreter[0] == "" {
		errs.Add("interpreter", "the name of the shell is empty; write [bash, -c] or [sh, -c]")
	}
	if c.Timeout < 0 {
		errs.Add("timeout", "%s is negative", c.Timeout)
	}
	c.validateNetwork(&errs)
	c.validateLimits(&errs)
	c.validateCapabilities(&errs)
	c.validateMounts(&errs)
	return errors.Join(errs...)
}

var (
	platformPattern = lazyregexp.New(`^linux/[a-z0-9]+(/[a-z0-9]+)?$`)
	userPattern     = lazyregexp.New(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*\$?(:[A-Za-z0-9_.][A-Za-z0-9_.-]*)?$`)
	networkPattern  = lazyregexp.New(`^(container:)?[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	runtimePattern  = lazyregexp.New(`^[A-Za-z0-9/][A-Za-z0-9/_.-]*$`)
)

func (c Config) validateNetwork(errs *env.ConfigErrorList) {
	if c.Network != "" && !networkPattern.MatchString(c.Network) {
		errs.Add("network", `%.60q is not a network; write "none", "bridge", "host", a network's name or "container:NAME"`, c.Network)
	}
	if c.Runtime != "" && !runtimePattern.MatchString(c.Runtime) {
		errs.Add("runtime", `%.60q is not the name of a runtime; write "runc" or "runsc"`, c.Runtime)
	}
}

func (c Config) validateLimits(errs *env.ConfigErrorList) {
	if c.MemoryBytes > 0 && c.MemoryBytes < minMemory {
		errs.Add("memory", "%s is less than the %s that a sandbox needs", size(c.MemoryBytes), size(minMemory))
	}
	if !(c.CPUs >= 0) || c.CPUs > 0 && c.CPUs < 0.01 {
		errs.Add("cpus", "%v is not a number of processors; use at least 0.01, or 0 for no limit", c.CPUs)
	}
	if c.PIDs > 0 && c.PIDs < minPIDs {
		errs.Add("pids_limit", "%d is less than the %d that the sandbox itself needs", c.PIDs, minPIDs)
	}
	if c.ShmBytes < 0 {
		errs.Add("shm_size", "%d is negative", c.ShmBytes)
	}
	for _, u := range c.Ulimits {
		u.validate(errs)
	}
	d := c.withDefaults()
	if total := d.tmpfsBytes(); d.MemoryBytes > 0 && total >= d.MemoryBytes {
		key := "shm_size"
		if d.ShmBytes < d.MemoryBytes {
			key = "tmpfs"
		}
		errs.Add(key, "%s, /dev/shm included, is not less than memory (%s), which contains it; a full tmpfs would end the sandbox",
			size(total), size(d.MemoryBytes))
	}
}

// tmpfsBytes is the memory that /dev/shm and Tmpfs can use.
func (c Config) tmpfsBytes() int64 {
	sum := c.ShmBytes
	for _, n := range c.Tmpfs {
		sum += max(n, 0)
	}
	return sum
}

func (u Ulimit) validate(errs *env.ConfigErrorList) {
	key := "ulimits." + u.Name
	switch {
	case u.Name == "nproc":
		errs.Add(key, "it counts the processes of a user in all containers of the machine and does not apply to root; set pids_limit")
	case !slices.Contains(UlimitNames, u.Name):
		errs.Add("ulimits", "unknown limit %.40q; the limits are %s", u.Name, strings.Join(UlimitNames, ", "))
	case u.Soft < -1 || u.Hard < -1:
		errs.Add(key, "%d:%d has a negative number; -1 means no limit", u.Soft, u.Hard)
	case u.Hard != -1 && (u.Soft > u.Hard || u.Soft == -1):
		errs.Add(key, "the soft limit %d is above the hard one, %d", u.Soft, u.Hard)
	}
}

// UlimitNames are the names of the limits that can be set.
var UlimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "rss", "rtprio", "rttime", "sigpending", "stack",
}

// size formats a number of bytes.
func size(n int64) string { return units.BytesSize(float64(n)) }
