package docker

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/go-units"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Mistake is a setting that no container can have, or none on this engine.
// Another try would find the same.
type Mistake struct {
	Key  string // the setting's name in the configuration, below "environment"
	Text string // what is wrong with it, and what would be right
}

func (m *Mistake) Error() string { return m.Key + ": " + m.Text }

// mistakes collects what is wrong, in the order in which it is found.
type mistakes []error

func (m *mistakes) add(key, format string, args ...any) {
	*m = append(*m, &Mistake{Key: key, Text: fmt.Sprintf(format, args...)})
}

// Mistakes are those that an error of Validate or Check stands for; none for
// an error of another kind.
func Mistakes(err error) []*Mistake {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // errors.AsType finds the first only
		var found []*Mistake
		for _, e := range several.Unwrap() {
			found = append(found, Mistakes(e)...)
		}
		return found
	}
	if m, ok := errors.AsType[*Mistake](err); ok {
		return []*Mistake{m}
	}
	return nil
}

// The least of what a sandbox can work with.
const (
	minMemory = 16 << 20 // bytes: the helper, a shell and a command
	minPIDs   = 16       // the helper's threads, a shell and a pipeline
)

// Validate reports what is wrong with the configuration whatever the engine,
// all of it: one *Mistake each. What only the engine knows is up to Check.
func (c Config) Validate() error {
	var m mistakes
	if c.Image == "" {
		m.add("image", "it is missing")
	}
	if c.Platform != "" && !platformPattern.MatchString(c.Platform) {
		m.add("platform", "%.60q is not of the form linux/amd64", c.Platform)
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		m.add("cwd", "%.80q is not absolute; write it from / on", c.Dir)
	}
	if c.User != "" && !userPattern.MatchString(c.User) {
		m.add("user", `%.60q is not a user; write "name", "1000" or "1000:1000"`, c.User)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(c.Env[name], "\x00") {
			m.add("env", "%.60q is not a name and value an environment can have", name)
		}
	}
	if len(c.Interpreter) > 0 && c.Interpreter[0] == "" {
		m.add("interpreter", "the name of the shell is empty; write [bash, -c] or [sh, -c]")
	}
	if c.Timeout < 0 {
		m.add("timeout", "%s is negative", c.Timeout)
	}
	c.validateNetwork(&m)
	c.validateLimits(&m)
	c.validateCapabilities(&m)
	c.validateMounts(&m)
	return errors.Join(m...)
}

var (
	platformPattern = lazyregexp.New(`^linux/[a-z0-9]+(/[a-z0-9]+)?$`)
	userPattern     = lazyregexp.New(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*\$?(:[A-Za-z0-9_.][A-Za-z0-9_.-]*)?$`)
	networkPattern  = lazyregexp.New(`^(container:)?[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	runtimePattern  = lazyregexp.New(`^[A-Za-z0-9/][A-Za-z0-9/_.-]*$`)
)

func (c Config) validateNetwork(m *mistakes) {
	if c.Network != "" && !networkPattern.MatchString(c.Network) {
		m.add("network", `%.60q names none; write "none", "bridge", "host", a network's name or "container:NAME"`, c.Network)
	}
	if c.Runtime != "" && !runtimePattern.MatchString(c.Runtime) {
		m.add("runtime", `%.60q is not the name of a runtime; write "runc" or "runsc"`, c.Runtime)
	}
}

func (c Config) validateLimits(m *mistakes) {
	if c.MemoryBytes > 0 && c.MemoryBytes < minMemory {
		m.add("memory", "%s is less than the %s that a sandbox needs", size(c.MemoryBytes), size(minMemory))
	}
	if !(c.CPUs >= 0) || c.CPUs > 0 && c.CPUs < 0.01 {
		m.add("cpus", "%v is not a number of processors; 0.01 is the least, and 0 means no bound", c.CPUs)
	}
	if c.PIDs > 0 && c.PIDs < minPIDs {
		m.add("pids_limit", "%d is less than the %d that the sandbox itself needs", c.PIDs, minPIDs)
	}
	if c.ShmBytes < 0 {
		m.add("shm_size", "%d is negative", c.ShmBytes)
	}
	for _, u := range c.Ulimits {
		u.validate(m)
	}
	d := c.withDefaults()
	if inMemory := d.inMemory(); d.MemoryBytes > 0 && inMemory >= d.MemoryBytes {
		key := "shm_size"
		if d.ShmBytes < d.MemoryBytes {
			key = "tmpfs"
		}
		m.add(key, "%s, /dev/shm included, is no less than memory (%s), of which it is a part; a full one would end the sandbox",
			size(inMemory), size(d.MemoryBytes))
	}
}

// inMemory is what file systems in memory can take of it, in bytes.
func (c Config) inMemory() int64 {
	sum := c.ShmBytes
	for _, n := range c.Tmpfs {
		sum += max(n, 0)
	}
	return sum
}

func (u Ulimit) validate(m *mistakes) {
	key := "ulimits." + u.Name
	switch {
	case u.Name == "nproc":
		m.add(key, "it counts what a user has in all containers of the machine, and does not bind root; set pids_limit")
	case !slices.Contains(UlimitNames, u.Name):
		m.add("ulimits", "there is no limit %.40q; there are %s", u.Name, strings.Join(UlimitNames, ", "))
	case u.Soft < -1 || u.Hard < -1:
		m.add(key, "%d:%d has a negative number; -1 means no limit", u.Soft, u.Hard)
	case u.Hard != -1 && (u.Soft > u.Hard || u.Soft == -1):
		m.add(key, "the soft limit %d is above the hard one, %d", u.Soft, u.Hard)
	}
}

// UlimitNames are the limits that can be set.
var UlimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "rss", "rtprio", "rttime", "sigpending", "stack",
}

// size is a number of bytes for people.
func size(n int64) string { return units.BytesSize(float64(n)) }
