package envopen

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/internal/usage"
)

// ContainerConfig returns the configuration that all containers of a run share.
// Its errors name the wrong key and where it was set.
func ContainerConfig(cfg *configs.Resolved, run string) (docker.Config, error) {
	c := parseContainer(cfg.Environment)
	c.Run = RunLabel(run)
	err := configErrors(cfg, WithPlaceholderImage(c).Validate())
	if err == nil && c.ReadOnly && cfg.Agent.Scrub && !isWritable(c, c.Dir) {
		err = usage.Errorf("environment.read_only: %s must be writable because agent.scrub is set; "+
			"set agent.scrub to false, or leave read_only out", c.Dir)
	}
	return c, err
}

// isWritable reports whether a directory is writable in a container with a
// read-only root.
func isWritable(c docker.Config, dir string) bool {
	within := func(target string) bool {
		rel, err := filepath.Rel(target, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	for target := range c.Tmpfs {
		if within(target) {
			return true
		}
	}
	return slices.ContainsFunc(c.Mounts, func(m docker.Mount) bool { return m.ReadWrite && within(m.Target) })
}

// parseContainer parses the settings of containers. It ignores invalid values,
// which the validation of the configuration has reported.
func parseContainer(e configs.Environment) docker.Config {
	c := docker.Config{
		Image: e.Image, Dir: e.Dir, Env: SandboxVariables(e), Timeout: configs.Duration(e.Timeout), Interpreter: e.Interpreter,
		Network: e.Network, CPUs: e.CPUs, PIDs: e.PidsLimit, ReadOnly: e.ReadOnly, Runtime: e.Runtime,
		User: e.User, Platform: e.Platform, CapAdd: e.CapAdd, CapDrop: e.CapDrop,
		NewPrivileges: e.NewPrivileges, AllowUnsafe: e.Unsafe, Tmpfs: make(map[string]int64, len(e.Tmpfs)),
	}
	c.MemoryBytes, _ = configs.ParseSize(e.Memory)
	c.ShmBytes, _ = configs.ParseSize(e.ShmSize)
	for target, text := range e.Tmpfs {
		if n, err := configs.ParseSize(text); err == nil {
			c.Tmpfs[target] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Ulimits)) {
		if u, err := configs.ParseUlimit(name, e.Ulimits[name]); err == nil {
			c.Ulimits = append(c.Ulimits, docker.Ulimit(u))
		}
	}
	for _, text := range e.Mounts {
		if m, err := configs.ParseMount(text); err == nil {
			c.Mounts = append(c.Mounts, docker.Mount(m))
		}
	}
	return c
}

// WithPlaceholderImage returns c with a placeholder image if it has none, so that the
// other settings can be validated before the row's image is known.
func WithPlaceholderImage(c docker.Config) docker.Config {
	c.Image = cmp.Or(c.Image, "row")
	return c
}

// configErrors converts errors of sandboxes about settings into errors about
// configuration keys with their origins. It returns other errors unchanged.
func configErrors(cfg *configs.Resolved, err error) error {
	var keyErrors []configs.KeyError
	for _, m := range env.ConfigErrors(err) {
		keyErrors = append(keyErrors, configs.KeyError{Key: "environment." + m.Key, Text: m.Text})
	}
	if keyErrors == nil {
		return err
	}
	return cfg.KeyErrors(keyErrors...)
}

// ContainerErrors returns the errors in the container settings. Values that
// cannot be parsed are reported when the configuration is resolved.
func ContainerErrors(cfg *configs.Resolved) []error {
	return configs.SplitErrors(configErrors(cfg, WithPlaceholderImage(parseContainer(cfg.Environment)).Validate()))
}

// checkContainer asks the engine whether it supports the container settings,
// and prints warnings about them to w.
func checkContainer(ctx context.Context, cfg *configs.Resolved, engine *docker.Engine, c docker.Config, w io.Writer) error {
	if err := engine.Check(ctx, WithPlaceholderImage(c)); err != nil {
		return configErrors(cfg, err)
	}
	for _, text := range slices.Concat(c.Warnings(), forwardWarnings(cfg)) {
		_, _ = fmt.Fprintln(w, "mini: warning: environment."+text) // best effort
	}
	return nil
}

// forwardWarnings returns warnings about the variables in
// environment.forward_env.
func forwardWarnings(cfg *configs.Resolved) []string {
	var warns []string
	keys := SecretVariables(cfg)
	for _, name := range cfg.Environment.ForwardEnv {
		switch _, ok := os.LookupEnv(name); {
		case !ok:
			warns = append(warns, fmt.Sprintf("forward_env: %s is not set", name))
		case slices.Contains(keys, name):
			warns = append(warns, fmt.Sprintf("forward_env: %s is the model's key; the model can read it in its sandbox", name))
		}
	}
	return warns
}

// SandboxVariables returns the environment variables of sandboxes: the configured ones,
// the forwarded ones and, if environment.user is set and GIT_CONFIG_COUNT is not, those
// that make git accept repositories of other users.
func SandboxVariables(e configs.Environment) map[string]string {
	vars := maps.Clone(e.Env)
	if vars == nil {
		vars = map[string]string{}
	}
	for _, name := range e.ForwardEnv {
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	if e.User != "" && vars["GIT_CONFIG_COUNT"] == "" {
		// Git refuses repositories of other users; those in images belong to root.
		maps.Copy(vars, map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"})
	}
	return vars
}

// unsupportedReasons say why a class does not support settings, or a single setting, and what to do.
var unsupportedReasons = map[string]string{
	"local":                             "commands run as this user on this machine, with its network; leave it out, or use docker",
	"bubblewrap":                        "it shares this machine's programs and user, and limits no resources; leave it out, or use docker",
	"kubernetes environment.mounts":     "the folders of this machine are not on the nodes of the cluster; leave it out, or use docker",
	"kubernetes environment.ulimits":    "pods have the limits of the container runtime of their node; leave it out, or use docker",
	"kubernetes environment.pids_limit": "the kubelet of the node limits the processes of a pod; leave it out, or use docker",
	"kubernetes environment.platform":   "the node decides it; set environment.kubernetes.node_selector, for example {kubernetes.io/arch: amd64}",
}

// CheckSettings returns an error if the user set a setting that sandboxes of a class cannot have. It
// ignores mini's defaults, which are meant for containers. A class supports what it implies: bubblewrap
// has a read-only root and no capabilities, and local commands may gain privileges.
func CheckSettings(cfg *configs.Resolved, class string) error {
	for i, section := range []string{"environment.", "run."} {
		settings := []reflect.Value{reflect.ValueOf(cfg.Environment), reflect.ValueOf(cfg.Run)}[i]
		for i := range settings.NumField() {
			field, value := settings.Type().Field(i), settings.Field(i)
			if !slices.Contains(strings.Fields(field.Tag.Get("lacks")), class) {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			key := section + name
			origin, isUsers := cfg.UserOrigin(key)
			if isUsers && configs.IsSet(value) && (key != "environment.network" || value.String() != "host") {
				reason := cmp.Or(unsupportedReasons[class+" "+key], unsupportedReasons[class])
				return usage.Errorf("%s is set (%s), but %s does not support it: %s", key, origin, class, reason)
			}
		}
	}
	return nil
}
