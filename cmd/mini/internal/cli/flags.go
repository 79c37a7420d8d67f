package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
)

// configFlags are the flags that are configuration, for every command that
// runs an agent or shows with what it would run.
type configFlags struct {
	set    *pflag.FlagSet
	keys   map[string]string // of flags that stand for another setting here
	config []string
	// between are layers above the user's own settings, and below -c.
	between []configs.Layer
	typed   map[string]bool // the layers of this command line, by their names
	local   []configs.Layer // what --local stands for
	server  string          // that --local has found, for people
}

func (c *configFlags) flags(f *pflag.FlagSet) {
	c.configFlag(f)
	f.VarP(new(modelFlag), "model", "m", "`NAME` of the model")
	localFlag(f)
	profileFlag(f)
	f.String("model-class", "", "client of the model: openai, anthropic or scripted")
	f.String("environment-class", "", "sandbox: docker, local or bubblewrap")
	f.Float64P("cost-limit", "l", 0, "cost limit of an attempt in `USD` (default 3; 0: none)")
	f.Bool("no-autosubmit", false, "do not submit the diff when an attempt reaches a limit")
	peerFlags(f)
}

// configFlag is -c. It is all of the settings' flags for commands that run no agent.
func (c *configFlags) configFlag(f *pflag.FlagSet) {
	c.set = f
	f.StringArrayVarP(&c.config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
}

// modelFlag is the value of -m. A second name is an error: of several models
// the last one would answer alone.
type modelFlag string

// String implements pflag.Value.
func (m *modelFlag) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *modelFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (m *modelFlag) Set(name string) error {
	if *m != "" && string(*m) != name {
		return usagef("-m names two models, %.60q and %.60q; give one, or name several in model.route", string(*m), name)
	}
	*m = modelFlag(name)
	return nil
}

// settingFlags are the flags that stand for a setting. A command need not have
// all of them.
var settingFlags = []struct{ flag, key string }{
	{"model", "model.model_name"},
	{"model-class", "model.model_class"},
	{"environment-class", "environment.environment_class"},
	{"cost-limit", "agent.cost_limit"},
	{"no-autosubmit", "agent.autosubmit"},
	{"replies", "model.replies"},
	{"workers", "run.workers"},
	{"attempts", "run.attempts"},
	{"network", "environment.network"},
	{"keep", "run.keep"},
	{"resume-attempts", "run.resume_attempts"},
	{"total-cost-limit", "run.total_cost_limit"},
	{"total-calls", "run.total_calls"},
	{"max-consecutive-provider-failures", "run.max_consecutive_provider_failures"},
	{"image-budget", "run.image_budget"},
	{"eval", "run.eval"},
	{"eval-workers", "eval.workers"},
	{"eval-network", "eval.network"},
	{"timeout", ""}, // as the command says
	{"rerun-failed", "eval.rerun_failed"},
	{"cache", "eval.cache"},
}

// resolve is the configuration a command runs with. It refuses what
// mini-swe-agent would heed and mini cannot.
func (c *configFlags) resolve(ctx context.Context, shipped ...string) (*configs.Resolved, error) {
	if err := refusal(c.set, os.Environ(), shipped[0]); err != nil {
		return nil, err
	}
	cfg, err := c.mergeLocal(ctx, shipped...)
	if err != nil {
		return nil, err
	}
	return cfg, checkModelName(cfg)
}

// merge lays the layers on top of each other, in the order of the design: the
// shipped defaults, what the model's class decides (OPENAI_BASE_URL), the
// user's file, the variables of mini-swe-agent, what the command adds, the
// profile, -c, and the flags.
func (c *configFlags) merge(shipped ...string) (*configs.Resolved, error) {
	if err := loadDotenv(); err != nil {
		return nil, err
	}
	var layers []configs.Layer
	add := func(l configs.Layer, err error) error {
		layers = append(layers, l)
		return err
	}
	for i, name := range shipped {
		if err := add(configs.Shipped(name)); err != nil {
			return nil, err
		}
		if i > 0 {
			continue
		}
		// The user's own settings come right above the defaults; what a
		// command adds to those (the demo's settings) is above them.
		if path := userConfig(); exists(path) {
			if err := add(configs.ReadFile(path)); err != nil {
				return nil, err
			}
		}
		peers, err := peerLayers(os.Environ(), name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, peers...)
	}
	profile, err := c.profileLayers()
	if err != nil {
		return nil, err
	}
	layers = slices.Concat(layers, c.between, profile)
	c.typed = map[string]bool{}
	for _, l := range profile {
		c.typed[l.Name] = true
	}
	for _, arg := range c.config {
		if err := add(configs.Read(arg, configDirs()...)); err != nil {
			return nil, err
		}
		c.typed[layers[len(layers)-1].Name] = true
	}
	for _, s := range settingFlags {
		f := c.set.Lookup(s.flag)
		key := cmp.Or(c.keys[s.flag], s.key)
		if f == nil || !f.Changed || key == "" {
			continue
		}
		if err := add(configs.Setting("--"+s.flag, key, flagValue(f))); err != nil {
			return nil, err
		}
		c.typed["--"+s.flag] = true
	}
	layers = append(layers, c.local...)
	cfg, err := configs.Merge(layers...)
	if err != nil {
		return cfg, err
	}
	own, err := classLayers(cfg.Model.Class)
	if err != nil || len(own) == 0 {
		return cfg, err
	}
	return configs.Merge(slices.Insert(layers, 1, own...)...) // right above the shipped defaults
}

// classVariables are the variables of a provider's own tools that stand for
// settings, by the class that heeds them.
var classVariables = map[string][]struct{ name, key string }{
	"openai":    {{"OPENAI_BASE_URL", "model.base_url"}, {"OPENAI_MODEL", "model.model_name"}},
	"anthropic": {{"ANTHROPIC_BASE_URL", "model.base_url"}, {"ANTHROPIC_MODEL", "model.model_name"}},
}

// classLayers are what the class of the model decides where nobody else does.
// Only its own variables are heeded, good or bad.
func classLayers(class string) ([]configs.Layer, error) {
	var layers []configs.Layer
	add := func(l configs.Layer, err error) error {
		layers = append(layers, l)
		return err
	}
	if class == "anthropic" {
		if err := add(configs.Setting("model_class: anthropic", "model.api_key_env", "ANTHROPIC_API_KEY")); err != nil {
			return nil, err
		}
	}
	for _, v := range classVariables[class] {
		value, layer := os.Getenv(v.name), v.name
		if v.key == "model.base_url" {
			value, layer = providerURL(v.name)
		}
		if value != "" {
			if err := add(configs.Setting(layer, v.key, strconv.Quote(value))); err != nil {
				return nil, err
			}
		}
	}
	return layers, nil
}

// flagValue is what a flag was given, as the value of a setting.
func flagValue(f *pflag.Flag) string {
	switch value := f.Value.String(); {
	case f.Name == "no-autosubmit":
		return strconv.FormatBool(value != "true")
	case f.Value.Type() == "string":
		return strconv.Quote(value)
	default:
		return value
	}
}

// configDirs are where -c looks for a file that is not where its name says.
func configDirs() []string {
	if dir := os.Getenv("MSWEA_CONFIG_DIR"); dir != "" {
		return []string{dir}
	}
	return nil
}

// userConfig is where the user's own file is looked for; "" where the system
// does not say.
func userConfig() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mini", "config.yaml")
}

func exists(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

// userConfigHint names the user's file in messages.
func userConfigHint() string {
	if path := userConfig(); path != "" {
		return path
	}
	return "a file for -c"
}
