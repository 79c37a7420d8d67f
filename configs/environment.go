package configs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// validateEnvironment checks the syntax of each value. The environment packages check
// what a sandbox supports (see Resolved.KeyErrors).
func (r *Resolved) validateEnvironment() []error {
	e := r.Environment
	oldClass, _ := findOldClass(environmentClassKey, e.Class)
	errs := slices.Concat(
		r.oneOf(environmentClassKey, e.Class, EnvironmentClasses, oldClass.Why),
		r.validateKubernetes(),
	)
	addError := func(key, format string, args ...any) {
		errs = append(errs, r.errorf("environment."+key, format, args...))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(e.Env[name], "\x00") {
			addError("env."+name, "not a valid name and value of an environment variable")
		}
	}
	for _, name := range e.TaskEnv {
		if !IsVariable(name) {
			addError("task_env", "%.60q is not the name of a variable", name)
		}
	}
	for _, name := range e.ForwardEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			addError("forward_env", "%.60q is not the name of a variable; values belong in environment.env", name)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(e.Tmpfs)) {
		if n, err := ParseSize(e.Tmpfs[target]); err != nil || n == 0 {
			addError("tmpfs."+target, `%.60q is not a size; write "64m"`, e.Tmpfs[target])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Ulimits)) {
		if _, err := ParseUlimit(name, e.Ulimits[name]); err != nil {
			addError("ulimits."+name, "%v", err)
		}
	}
	for _, m := range e.Mounts {
		if _, err := ParseMount(m); err != nil {
			addError("mounts", "%v", err)
		}
	}
	return errs
}

// RunsOnHost reports whether sandboxes of a class use directories of this machine, and
// need neither a container engine nor images.
func RunsOnHost(class string) bool { return class == "local" || class == "bubblewrap" }

// Ulimit is a parsed entry of Environment.Ulimits; -1 means unlimited.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// ParseUlimit parses "1024" (both limits), "1024:4096", "-1" or "unlimited". It checks
// only that the limits are integers of at least -1.
func ParseUlimit(name, s string) (Ulimit, error) {
	soft, hard, both := strings.Cut(s, ":")
	if !both {
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

// Mount is a parsed entry of Environment.Mounts.
type Mount struct {
	Source, Target string
	ReadWrite      bool
}

// ParseMount parses HOST:CONTAINER, HOST:CONTAINER:ro or HOST:CONTAINER:rw. It checks
// only that the paths are not empty.
func ParseMount(s string) (Mount, error) {
	errFormat := fmt.Errorf("%.100q is not a mount; write HOST:CONTAINER, or HOST:CONTAINER:rw to let commands write there", s)
	var m Mount
	parts := strings.Split(s, ":")
	switch {
	case len(parts) == 3 && parts[2] == "rw":
		m.ReadWrite = true
	case len(parts) == 3 && parts[2] == "ro":
	case len(parts) != 2:
		return m, errFormat
	}
	m.Source, m.Target = parts[0], parts[1]
	if m.Source == "" || m.Target == "" {
		return m, errFormat
	}
	return m, nil
}
