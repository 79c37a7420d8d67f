package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/openai"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/doctor"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/runner"
)

// doctorOptions are the flags of mini doctor: those of the batch to come.
type doctorOptions struct{ benchOptions }

func newDoctor(s Streams) *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Is this machine ready? A line for each check, and what to do",
		Long: `Looks at what a batch will need: the container engine, memory and disks, the
key and the model's server, the hub, limits. Give it the flags of the batch and
it checks for that one. It ends with 2 when something is missing that mini
cannot work without; what is only unfortunate is a warning. It asks servers,
but starts nothing, fetches nothing and costs nothing.`,
		Example: `  mini doctor
  mini doctor --subset verified --slice 0:50 -w 8 -m gpt-5-mini
  mini doctor --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), s, o) },
	}
	f := cmd.Flags()
	o.flags(f)
	// Taken, so that a batch's flags can be given as they are, and without a
	// meaning here.
	for _, name := range []string{"cost-limit", "no-autosubmit", "redo-existing", "resume-attempts", "force", "dry-run", "progress", "events", "empty-folder"} {
		_ = f.MarkHidden(name) // fails for flags that do not exist
	}
	f.Lookup("json").Usage = "print the checks as JSON on stdout"
	return cmd
}

func runDoctor(ctx context.Context, s Streams, o *doctorOptions) error {
	cfg, settings := o.resolve(ctx, o.shipped()...)
	if settings == nil {
		for _, one := range modelsOf(cfg) {
			_, err := keyOf(one)
			settings = cmp.Or(settings, err)
		}
	}
	if settings != nil { // one check fails, the others go by the defaults
		var err error
		if cfg, err = shippedOnly(o.shipped()...); err != nil {
			return err
		}
	}
	container, err := containerConfig(cfg, "")
	var sandbox func(context.Context) error
	if onHost(cfg.Environment.Class) {
		err = kept(cfg, cfg.Environment.Class)
	}
	if cfg.Environment.Class == "bubblewrap" {
		if err == nil {
			_, err = bubblewrapConfig(cfg.Environment)
		}
		sandbox = func(ctx context.Context) error { return tryHost(ctx, cfg) }
	}
	if err != nil {
		settings = err
	}
	here := cmp.Or(o.output, ".")
	var unfit error
	if o.output != "" {
		unfit = runner.Fit(o.output)
	}
	cache, _ := cacheDir() // the check says what is wrong
	var servers []doctor.Server
	for _, one := range modelsOf(cfg) {
		servers = append(servers, serverOf(one))
	}
	c := doctor.Config{
		Environment: cfg.Environment.Class, HelperDir: cfg.Environment.HelperDir, Platform: cfg.Environment.Platform,
		MemoryBytes: memoryOf(container), Workers: cfg.Run.Workers,
		Servers: servers,
		Sandbox: sandbox, Settings: settings, Dir: here, Unfit: unfit, Cache: cache, Hub: pingHub, Hint: hintOf, Terminal: terminalOf(s),
	}
	if len(o.subsets) > 0 {
		c.Plan = func(ctx context.Context) (doctor.Plan, error) { return o.plan(ctx, cfg) }
	}
	checks := doctor.Examine(ctx, c)
	failed := doctor.Failed(checks)
	if o.json {
		enc := json.NewEncoder(s.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(map[string]any{"format": "mini-doctor-1", "ready": len(failed) == 0, "checks": checks})
	} else {
		err = doctor.Write(s.Out, checks, widthOf(s.Out))
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(failed) > 0:
		return usagef("not ready: %s; see FAIL above", strings.Join(failed, ", "))
	}
	return nil
}

// shippedOnly is the configuration without anything of the user's.
func shippedOnly(names ...string) (*configs.Resolved, error) {
	var layers []configs.Layer
	for _, name := range names {
		l, err := configs.Shipped(name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return configs.Merge(layers...)
}

// memoryOf is how much a sandbox may take, in bytes; 0 means no bound.
func memoryOf(c docker.Config) int64 {
	return max(0, cmp.Or(c.MemoryBytes, docker.DefaultMemory))
}

// pingHub asks the hub for a sign of life.
func pingHub(ctx context.Context) error {
	h, err := openHub(hub.Config{})
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Ping(ctx)
}

// plan counts the images of the rows, as far as these are on this machine.
func (o *doctorOptions) plan(ctx context.Context, cfg *configs.Resolved) (doctor.Plan, error) {
	var sources []datasets.Source
	for _, name := range o.subsets {
		source, ok := sourceHere(ctx, name, o.split)
		switch {
		case ok:
			sources = append(sources, source)
		case ctx.Err() != nil:
			return doctor.Plan{}, ctx.Err()
		case looksLikeFile(name):
			_, err := datasets.Local(name, o.split)
			return doctor.Plan{}, cmp.Or(err, fmt.Errorf("%s is no file of rows", name))
		default:
			if _, err := hub.ParseRef(name, o.split); err != nil {
				return doctor.Plan{}, err
			}
			return doctor.Plan{}, &doctor.AbsentError{Set: name}
		}
	}
	set, err := datasets.Load(ctx, sources, o.selection)
	if err != nil {
		return doctor.Plan{}, err
	}
	if len(set.Instances) == 0 {
		return doctor.Plan{}, errors.New("no instance is left after --instance, --filter and --slice")
	}
	p := doctor.Plan{Instances: len(set.Instances)}
	if onHost(cfg.Environment.Class) {
		return p, nil
	}
	found := measure(ctx, cfg, imageNeeds(cfg, set.Instances), 0)
	p.Images, p.Missing, p.MissingBytes, p.Problem = found.Distinct, found.Pull, found.PullBytes, found.Problem
	return p, nil
}

// terminalOf says what mini can show.
func terminalOf(s Streams) string {
	f, ok := s.Out.(*os.File)
	if !ok || !s.OutTerminal {
		return "stdout is no terminal"
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return "a terminal that does not say how large it is"
	}
	return fmt.Sprintf("%d columns, %d lines, TERM=%s", width, height, cmp.Or(os.Getenv("TERM"), "(not set)"))
}

// serverOf is where the model of a configuration is asked.
func serverOf(cfg *configs.Resolved) doctor.Server {
	m := cfg.Model
	key, _ := keyOf(cfg) // the settings were checked
	return doctor.Server{
		Scripted: m.Class == "scripted", Model: m.Name,
		BaseURL: modelsRoot(cfg), Anthropic: m.Class == "anthropic", OwnServer: m.BaseURL != "",
		KeyEnv: m.APIKeyEnv, Key: key,
	}
}

// modelsRoot is below which a server has the list of its models. The address of
// one with Anthropic's API may have the "/v1" or not.
func modelsRoot(cfg *configs.Resolved) string {
	if cfg.Model.Class != "anthropic" {
		return cmp.Or(cfg.Model.BaseURL, openai.DefaultBaseURL)
	}
	base := cmp.Or(cfg.Model.BaseURL, anthropic.DefaultBaseURL)
	return strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/v1"
}
