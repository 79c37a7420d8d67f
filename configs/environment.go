package configs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Environment configures the sandbox. The tag lacks names the classes that do not support a setting.
type Environment struct {
	// Class is "docker", "local", "bubblewrap" or "kubernetes".
	Class string `yaml:"environment_class" json:"environment_class"`
	// Image overrides the instance's image.
	Image string `yaml:"image" json:"image,omitempty" lacks:"local bubblewrap"`
	Dir   string `yaml:"cwd" json:"cwd"`
	// Env is set for every command. ForwardEnv lists the variables that are passed on from
	// the host. Containers get no others; bubblewrap passes on a few (PATH, LANG), and the
	// local environment most, but no secrets, unless CleanEnv is set.
	Env        map[string]string `yaml:"env" json:"env,omitempty"`
	ForwardEnv []string          `yaml:"forward_env" json:"forward_env,omitempty"`
	// Timeout limits one command, in seconds.
	Timeout float64 `yaml:"timeout" json:"timeout" check:"seconds"`
	// Interpreter is the shell and its flags. A container fails to start if the image
	// lacks it; [sh, -c] is for images without bash.
	Interpreter []string `yaml:"interpreter" json:"interpreter,omitempty"`

	// CleanEnv gives commands of the local environment only PATH, HOME, LANG and a few
	// others from the host, plus Env and ForwardEnv.
	CleanEnv bool `yaml:"clean_env" json:"clean_env,omitempty"`

	// The remaining fields are for containers.

	// PullTimeout is how long a pull may make no progress, in seconds.
	PullTimeout float64 `yaml:"pull_timeout" json:"pull_timeout" check:"seconds"`
	// Network is "none", "bridge", "host", the name of a network, or "container:NAME" to
	// share another container's. The prompt tells the model if Network is "none".
	Network string `yaml:"network" json:"network,omitempty" lacks:"local"`
	// Memory and ShmSize are sizes like "4g" or "512m". Files in /dev/shm count as
	// memory; its default size is 64m, or a quarter of Memory if that is less.
	Memory    string  `yaml:"memory" json:"memory,omitempty" check:"size" lacks:"local bubblewrap"`
	ShmSize   string  `yaml:"shm_size" json:"shm_size,omitempty" check:"size" lacks:"local"`
	CPUs      float64 `yaml:"cpus" json:"cpus,omitempty" check:"min=0" lacks:"local bubblewrap"` // 1.5 is one and a half; 0 means no limit
	PidsLimit int64   `yaml:"pids_limit" json:"pids_limit,omitempty" check:"min=0" lacks:"local bubblewrap kubernetes"`
	// Tmpfs maps directories to the size of a tmpfs, for example /scratch: 64m. Files
	// in it count as memory.
	Tmpfs map[string]string `yaml:"tmpfs" json:"tmpfs,omitempty" lacks:"local"`
	// ReadOnly makes the image's file system read-only. /tmp becomes a tmpfs, unless
	// Tmpfs or Mounts contain it.
	ReadOnly bool `yaml:"read_only" json:"read_only,omitempty" lacks:"local"`
	// Ulimits maps limits to "soft" or "soft:hard", for example nofile: "1024:4096".
	Ulimits map[string]string `yaml:"ulimits" json:"ulimits,omitempty" lacks:"local bubblewrap kubernetes"`
	// Mounts are directories of the host, as HOST:CONTAINER, read-only unless followed
	// by ":rw".
	Mounts []string `yaml:"mounts" json:"mounts,omitempty" lacks:"local kubernetes"`
	// Runtime is an OCI runtime known to the engine, for example "runsc".
	Runtime  string `yaml:"runtime" json:"runtime,omitempty" lacks:"local bubblewrap"`
	User     string `yaml:"user" json:"user,omitempty" lacks:"local bubblewrap"`
	Platform string `yaml:"platform" json:"platform,omitempty" lacks:"local bubblewrap kubernetes"`
	// CapAdd and CapDrop replace the default lists of capabilities.
	CapAdd  []string `yaml:"cap_add" json:"cap_add,omitempty" lacks:"local bubblewrap"`
	CapDrop []string `yaml:"cap_drop" json:"cap_drop,omitempty" lacks:"local"`
	// NewPrivileges lets set-uid programs gain privileges.
	NewPrivileges bool `yaml:"new_privileges" json:"new_privileges,omitempty" lacks:"bubblewrap"`
	// TaskEnv lists the variables of the host that Harbor tasks may use, as ${NAME}. BaseImages
	// maps images of FROM in their Dockerfiles to others, for example ubuntu:22.04: mine; "*" is
	// a prefix, such as mirror:5000/, for those that the engine does not have.
	TaskEnv    []string          `yaml:"task_env" json:"task_env,omitempty"`
	BaseImages map[string]string `yaml:"base_images" json:"base_images,omitempty"`
	// KeepProcesses leaves the processes of the agent running while the tests of a Harbor
	// task run in its container. They can change the result.
	KeepProcesses bool `yaml:"keep_processes" json:"keep_processes,omitempty"`
	// PristineTests runs the tests of a Harbor task with a shared verifier once more, in a
	// fresh container with nothing but the diff of the agent. Those rewards count.
	PristineTests bool `yaml:"pristine_tests" json:"pristine_tests,omitempty"`
	// Kubernetes is for the class of this name.
	Kubernetes Kubernetes `yaml:"kubernetes" json:"kubernetes,omitzero"`
	// HelperDir is a directory with helper binaries to use instead of the embedded
	// ones.
	HelperDir string `yaml:"helper_dir" json:"helper_dir,omitempty"`
	// Unsafe permits capabilities with which a command can forge its own results, and
	// mounts that give it control of the engine's machine.
	Unsafe bool `yaml:"unsafe" json:"unsafe,omitempty" lacks:"local bubblewrap"`
}

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
