// Package system implements the commands mini doctor, mini clean, mini kubernetes, mini ctl and
// mini shell.
package system

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets/hub"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/env/docker"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
)

// DoctorOptions are the flags of mini doctor: those of mini bench, and its own.
type DoctorOptions struct {
	bench      bench.Options
	kubernetes bool
}

// NewDoctor returns the command mini doctor.
func NewDoctor(a *app.App) *cobra.Command {
	o := &DoctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine can run mini",
		Long: `Checks what a batch needs: the container engine, memory and disks, the key and
the model's server, the hub and sandboxes. With the flags of a batch, it checks for
the settings of that batch; a dry run of mini bench shows its images. The exit code
is 2 if mini cannot work; smaller problems are warnings. It contacts servers, but
it runs no attempts, fetches nothing and costs nothing.

With --kubernetes, or if the environment class is kubernetes, it checks the
cluster instead of the engine: rights, quotas, and one pod of environment.image,
which it starts, examines and removes.`,
		Example: `  mini doctor
  mini doctor -w 8 -m gpt-5-mini
  mini doctor --kubernetes -c environment.image=registry.example/python:3.12
  mini doctor --json`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	o.bench.AddFlags(f)
	// Accept the other flags of mini bench, so that users can reuse its command line.
	for _, name := range []string{"cost-limit", "no-autosubmit", "redo-existing", "resume-attempts", "force", "dry-run", "progress", "events", "empty-folder"} {
		_ = f.MarkHidden(name) // an error means that the flag does not exist
	}
	f.Lookup("json").Usage = "print the checks as JSON on stdout"
	f.BoolVar(&o.kubernetes, "kubernetes", false, "check the cluster of environment.kubernetes")
	return cmd
}

// runDoctor runs the checks and prints them.
func runDoctor(ctx context.Context, a *app.App, o *DoctorOptions) error {
	if o.kubernetes {
		layer, err := configs.ReadArg("environment.environment_class=kubernetes")
		if err != nil {
			return err
		}
		o.bench.TopLayers = append(o.bench.TopLayers, layer)
	}
	cfg, settingsErr := a.Config(ctx, &o.bench.Flags, o.bench.BuiltinConfigs()...)
	if settingsErr == nil {
		for _, model := range configs.ModelConfigs(cfg) {
			_, err := configs.ModelKey(model)
			settingsErr = cmp.Or(settingsErr, err)
		}
	}
	if settingsErr != nil { // a failed check reports it; the other checks use the defaults
		var err error
		if cfg, err = builtinSettings(o.bench.BuiltinConfigs()...); err != nil {
			return err
		}
	}
	container, err := envopen.ContainerConfig(cfg, "")
	var trySandbox func(context.Context) error
	if class := cfg.Environment.Class; err == nil || envopen.IsHostClass(class) { // which has no container
		err = envopen.CheckSettings(cfg, class)
	}
	if cfg.Environment.Class == "bubblewrap" {
		if err == nil {
			_, err = envopen.BubblewrapConfig(cfg.Environment)
		}
		trySandbox = func(ctx context.Context) error { return envopen.CheckHost(ctx, cfg) }
	}
	if err != nil {
		settingsErr = err
	}
	runDir := cmp.Or(o.bench.Output, ".")
	var dirErr error
	if o.bench.Output != "" {
		dirErr = runner.CheckFolder(o.bench.Output)
	}
	cacheDir, _ := datasetopen.CacheDir() // the check of the cache reports an empty path
	var servers []doctor.Server
	for _, model := range configs.ModelConfigs(cfg) {
		servers = append(servers, serverFor(model))
	}
	c := doctor.Config{
		Environment: cfg.Environment.Class, HelperDir: cfg.Environment.HelperDir, Platform: cfg.Environment.Platform,
		MemoryBytes: max(0, cmp.Or(container.MemoryBytes, docker.DefaultMemoryBytes)), Workers: cfg.Run.Workers,
		Servers:    servers,
		TrySandbox: trySandbox, SettingsError: settingsErr, RunDir: runDir, DirError: dirErr, CacheDir: cacheDir, PingHub: func(ctx context.Context) error {
			h, err := datasetopen.Hub(hub.Config{})
			if err != nil {
				return err
			}
			defer h.Close()
			return h.Ping(ctx)
		},
	}
	var clusterChecks []doctor.Check
	if configs.UsesCluster(cfg.Environment.Class) {
		if clusterChecks, err = checkCluster(ctx, a, cfg); err != nil {
			return err
		}
	}
	checks := append(doctor.Run(ctx, c), clusterChecks...)
	failed := slices.Compact(doctor.FailedChecks(checks))
	if o.bench.JSON {
		err = cmdutil.WriteJSON(a.Out, map[string]any{"format": "mini-doctor-1", "ready": len(failed) == 0, "checks": checks})
	} else {
		err = a.Print(doctor.Doc(checks))
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(failed) > 0:
		text := "not ready: " + strings.Join(failed, ", ") + "; see FAIL above"
		if !slices.ContainsFunc(failed, func(name string) bool { return name != "docker" && name != "helper" }) {
			text += "; mini works on a task in a local folder, but mini bench needs containers"
		}
		return usage.Errorf("%s", text)
	}
	return nil
}

// builtinSettings merges built-in configurations, without the user's settings.
func builtinSettings(names ...string) (*configs.Resolved, error) {
	var layers []configs.Layer
	for _, name := range names {
		l, err := configs.ReadBuiltin(name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return configs.Merge(layers...)
}

// serverFor returns the server of the configured model.
func serverFor(cfg *configs.Resolved) doctor.Server {
	m := cfg.Model
	key, _ := configs.ModelKey(cfg) // runDoctor has reported an error
	return doctor.Server{
		Scripted: m.Class == "scripted", Model: m.Name,
		BaseURL: settings.ModelsURL(m), UsesAnthropicAPI: m.Class == "anthropic", CustomServer: m.BaseURL != "",
		KeyEnv: m.APIKeyEnv, KeyFile: configs.DotenvFile(m.APIKeyEnv), Key: key,
	}
}
