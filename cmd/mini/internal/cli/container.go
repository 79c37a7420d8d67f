package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/docker"
)

// containerConfig is what all containers of a run have in common. What no
// container can have is an error that names the key and where it was set.
func containerConfig(cfg *configs.Resolved, run string) (docker.Config, error) {
	c, err := readContainer(cfg.Environment)
	c.Run = runLabel(run)
	if err == nil {
		err = misconfigured(cfg, anyImage(c).Validate())
	}
	if err == nil && c.ReadOnly && cfg.Agent.Scrub && !writable(c, c.Dir) {
		err = usagef("environment.read_only leaves nothing to write to in %s, and the repository there is to be scrubbed; set agent.scrub to false, or leave read_only away", c.Dir)
	}
	return c, err
}

// writable says that a directory lies in something that can be written to, for
// all that the rest of the container cannot be.
func writable(c docker.Config, dir string) bool {
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

// readContainer takes texts with parts apart. Those it cannot read, which
// resolving the configuration finds before, it leaves out.
func readContainer(e configs.Environment) (docker.Config, error) {
	c := docker.Config{
		Image: e.Image, Dir: e.Dir, Env: withForwarded(e), Timeout: duration(e.Timeout), Interpreter: e.Interpreter,
		Network: e.Network, CPUs: e.CPUs, PIDs: e.PidsLimit, ReadOnly: e.ReadOnly, Runtime: e.Runtime,
		User: e.User, Platform: e.Platform, CapAdd: e.CapAdd, CapDrop: e.CapDrop,
		NewPrivileges: e.NewPrivileges, Force: e.Unsafe,
	}
	var failed error
	ok := func(err error) bool {
		failed = cmp.Or(failed, err)
		return err == nil
	}
	var err error
	c.MemoryBytes, err = configs.Size(e.Memory)
	ok(err)
	c.ShmBytes, err = configs.Size(e.ShmSize)
	ok(err)
	c.Tmpfs = make(map[string]int64, len(e.Tmpfs))
	for target, text := range e.Tmpfs {
		if n, err := configs.Size(text); ok(err) {
			c.Tmpfs[target] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Ulimits)) {
		if u, err := configs.ParseUlimit(name, e.Ulimits[name]); ok(err) {
			c.Ulimits = append(c.Ulimits, docker.Ulimit(u))
		}
	}
	for _, text := range e.Mounts {
		if m, err := configs.ParseMount(text); ok(err) {
			c.Mounts = append(c.Mounts, docker.Mount(m))
		}
	}
	return c, before(failed)
}

// anyImage stands in for the image, which may be each row's own; everything
// else is known before there is a row.
func anyImage(c docker.Config) docker.Config {
	c.Image = cmp.Or(c.Image, "row")
	return c
}

// misconfigured turns the mistakes that an error stands for into mistakes of
// the configuration, each with its place. Other errors are returned as they
// are.
func misconfigured(cfg *configs.Resolved, err error) error {
	var wrong []configs.Wrong
	for _, m := range docker.Mistakes(err) {
		wrong = append(wrong, configs.Wrong{Key: "environment." + m.Key, Text: m.Text})
	}
	if wrong == nil {
		return err
	}
	return cfg.Mistakes(wrong...)
}

// containerMistakes are all that no container can have. Texts that cannot be
// read are mistakes of their own, found before.
func containerMistakes(cfg *configs.Resolved) []error {
	c, _ := readContainer(cfg.Environment)
	return configs.All(misconfigured(cfg, anyImage(c).Validate()))
}

// checkContainer asks the engine, once for all instances, whether containers
// can be as they are configured, and says what may not be as it was meant.
func checkContainer(ctx context.Context, cfg *configs.Resolved, engine *docker.Engine, c docker.Config, w io.Writer) error {
	if err := engine.Check(ctx, anyImage(c)); err != nil {
		return misconfigured(cfg, err)
	}
	for _, text := range slices.Concat(c.Warnings(), forwarding(cfg)) {
		_, _ = fmt.Fprintln(w, "mini: warning: environment."+text) // only for people
	}
	return nil
}

// forwarding are warnings about variables that are to be passed on.
func forwarding(cfg *configs.Resolved) []string {
	var w []string
	keys := keyVariables(cfg)
	for _, name := range cfg.Environment.ForwardEnv {
		switch _, ok := os.LookupEnv(name); {
		case !ok:
			w = append(w, fmt.Sprintf("forward_env: %s is not set here, and so not in the sandboxes", name))
		case slices.Contains(keys, name):
			w = append(w, fmt.Sprintf("forward_env: %s is the model's key; the model can read it in its sandbox", name))
		}
	}
	return w
}

// withForwarded adds the variables of this process that are to be passed on, and
// what another user than the images' own needs.
func withForwarded(e configs.Environment) map[string]string {
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
		// Git refuses repositories of another owner, which those of images are
		// then: their builders were root.
		maps.Copy(vars, map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"})
	}
	return vars
}
