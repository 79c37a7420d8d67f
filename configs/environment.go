package configs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// validateEnvironment holds each value against its form. Whether a container
// can have it is up to those who make containers (see Resolved.Mistakes).
func (r *Resolved) validateEnvironment() []error {
	e := r.Environment
	errs := slices.Concat(
		r.class("environment.environment_class", e.Class, EnvironmentClasses, peerClass(e.Class, false)),
		r.positive("environment.timeout", e.Timeout),
		r.positive("environment.pull_timeout", e.PullTimeout),
	)
	bad := func(key, format string, args ...any) {
		errs = append(errs, r.errorf("environment."+key, format, args...))
	}
	for _, f := range []struct{ key, size string }{{"memory", e.Memory}, {"shm_size", e.ShmSize}} {
		if _, err := Size(f.size); err != nil {
			bad(f.key, `%.60q is not a size; write "4g" or "512m"`, f.size)
		}
	}
	if e.CPUs < 0 {
		bad("cpus", "%v is negative", e.CPUs)
	}
	if e.PidsLimit < 0 {
		bad("pids_limit", "%d is negative", e.PidsLimit)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(e.Env[name], "\x00") {
			bad("env."+name, "not a name and value an environment can have")
		}
	}
	for _, name := range e.ForwardEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("forward_env", "%.60q is not the name of a variable; values belong in environment.env", name)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(e.Tmpfs)) {
		if n, err := Size(e.Tmpfs[target]); err != nil || n == 0 {
			bad("tmpfs."+target, `%.60q is not a size; write "64m"`, e.Tmpfs[target])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Ulimits)) {
		if _, err := ParseUlimit(name, e.Ulimits[name]); err != nil {
			bad("ulimits."+name, "%v", err)
		}
	}
	for _, m := range e.Mounts {
		if _, err := ParseMount(m); err != nil {
			bad("mounts", "%v", err)
		}
	}
	return errs
}

// OnHost says that the sandboxes of a class are folders of this machine, and
// need neither a container engine nor images.
func OnHost(class string) bool { return class == "local" || class == "bubblewrap" }

// Ulimit is one of Environment.Ulimits, taken apart; -1 is no limit.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// ParseUlimit reads "1024", which is both limits, "1024:4096", or "-1". The
// words "unlimited" and "-1" are the same. Names and sizes are not looked at.
func ParseUlimit(name, s string) (Ulimit, error) {
	soft, hard, two := strings.Cut(s, ":")
	if !two {
		hard = soft
	}
	u := Ulimit{Name: name}
	for _, f := range []struct {
		text string
		n    *int64
	}{{soft, &u.Soft}, {hard, &u.Hard}} {
		if f.text == "unlimited" {
			f.text = "-1"
		}
		n, err := strconv.ParseInt(f.text, 10, 64)
		if err != nil || n < -1 {
			return u, fmt.Errorf(`%.60q is not a limit; write "1024", "1024:4096" (soft:hard) or "-1" for none`, s)
		}
		*f.n = n
	}
	return u, nil
}

// Mount is one of Environment.Mounts, taken apart.
type Mount struct {
	Source, Target string
	ReadWrite      bool
}

// drive begins a path on Windows, whose colon separates nothing.
var drive = lazyregexp.New(`^[A-Za-z]:[\\/]`)

// ParseMount reads HOST:CONTAINER, HOST:CONTAINER:ro or HOST:CONTAINER:rw. The
// paths themselves are not looked at.
func ParseMount(s string) (Mount, error) {
	errForm := fmt.Errorf("%.100q is not a mount; write HOST:CONTAINER, or HOST:CONTAINER:rw to let commands write there", s)
	var m Mount
	letter := drive.FindString(s)
	parts := strings.Split(strings.TrimPrefix(s, letter), ":")
	switch {
	case len(parts) == 3 && parts[2] == "rw":
		m.ReadWrite = true
	case len(parts) == 3 && parts[2] == "ro":
	case len(parts) != 2:
		return m, errForm
	}
	m.Source, m.Target = letter+parts[0], parts[1]
	if m.Source == "" || m.Target == "" {
		return m, errForm
	}
	return m, nil
}
