// Package settings resolves the configuration of a command from layers: built-in
// defaults, the user's file, environment variables of mini-swe-agent, profiles, -c,
// flags and a local model server.
package settings

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

// Flags are the flags that change settings. The options of commands that have settings embed
// them.
type Flags struct {
	FlagSet       *pflag.FlagSet
	SettingOfFlag map[string]string // settings of flags, by flag; overrides settingFlags
	Config        []string          // values of -c
	// RecordedLayers are layers above the user's settings and below the profile and -c.
	RecordedLayers []configs.Layer
	commandLine    map[string]bool // names of the layers from -c, flags and --profile
	TopLayers      []configs.Layer // the highest layers, for example of --local
	// Combination has the varied settings of one run of a sweep. It counts as command line.
	Combination []configs.Layer
	RunsSweeps  bool   // the command runs sweeps; others refuse the key vary of a file
	localModel  string // description of the model that --local found
	// impliedLocal is the value for --local that the name of the model implies, such as ollama.
	impliedLocal string
}

// AddFlags adds -c and the other flags of commands that run an agent.
func (c *Flags) AddFlags(f *pflag.FlagSet) {
	c.AddConfigFlag(f)
	f.VarP(new(modelFlag), "model", "m", "`NAME` of the model")
	AddLocalFlag(f)
	addProfileFlag(f)
	f.String("model-class", "", "client of the model: openai, anthropic or scripted")
	f.String("environment-class", "", "sandbox: docker, local or bubblewrap")
	f.Float64P("cost-limit", "l", 0, "cost limit of an attempt in `USD` (default 3; 0: none)")
	f.Bool("no-autosubmit", false, "do not submit the diff when an attempt reaches a limit")
	addCompatFlags(f)
}

// AddConfigFlag adds -c only. Commands that run no agent use it instead of AddFlags.
func (c *Flags) AddConfigFlag(f *pflag.FlagSet) {
	c.FlagSet = f
	f.StringArrayVarP(&c.Config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
}

// modelFlag is the value of -m. A second, different name is an error.
type modelFlag string

// String implements pflag.Value.
func (m *modelFlag) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *modelFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (m *modelFlag) Set(name string) error {
	if *m != "" && string(*m) != name {
		return usage.Errorf("-m names two models, %.60q and %.60q; give one, or compare them with mini bench --vary model.model_name=%.60[1]s,%.60[2]s", string(*m), name)
	}
	*m = modelFlag(name)
	return nil
}

// settingFlags lists the settings of flags. A command need not have all of these flags.
var settingFlags = []struct{ flag, key string }{
	{"model", "model.model_name"},
	{"model-class", "model.model_class"},
	{"environment-class", "environment.environment_class"},
	{"agent-class", "agent.agent_class"},
	{"agent", "agent.agent_class"},
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
	{"timeout", ""}, // has a setting only in Flags.SettingOfFlag
	{"rerun-failed", "eval.rerun_failed"},
	{"cache", "eval.cache"},
}

// Resolve returns the configuration of a command, based on the named built-in configurations. It
// returns an error for variables and flags of mini-swe-agent that mini does not support, and for
// the names that CheckModelNames rejects.
func (c *Flags) Resolve(ctx context.Context, builtins ...string) (*configs.Resolved, error) {
	if err := configs.LoadDotenv(); err != nil { // it may set variables that CheckCompat rejects
		return nil, err
	}
	if err := CheckCompat(c.FlagSet, os.Environ(), builtins[0]); err != nil {
		return nil, err
	}
	cfg, err := c.MergeLocal(ctx, builtins...)
	if err != nil {
		return nil, err
	}
	if c.impliedLocal != "" && c.FlagSet.Lookup("local") != nil {
		if err := c.resolveLocal(ctx, cfg, c.impliedLocal, "--local="+c.impliedLocal+", from the name of the model"); err != nil {
			return nil, err
		}
		if cfg, err = c.Merge(builtins...); err != nil {
			return nil, err
		}
	}
	if !cfg.UsesModel() {
		return cfg, nil
	}
	if err := CheckModelNames(cfg); err != nil {
		return cfg, err
	}
	return cfg, c.checkProviderKey(cfg)
}

// Merge merges the layers, lowest first: the first built-in configuration, the settings that the
// model class implies (such as OPENAI_BASE_URL), mini-swe-agent's .env file, the user's file, the
// shell's variables of mini-swe-agent, the other built-in configurations, RecordedLayers, the profile, -c, flags, Combination and TopLayers.
// What the name of the model implies comes with the name; see mergeModel.
func (c *Flags) Merge(builtins ...string) (*configs.Resolved, error) {
	if err := configs.LoadDotenv(); err != nil {
		return nil, err
	}
	var layers []configs.Layer
	add := func(l configs.Layer, err error) error {
		layers = append(layers, l)
		return err
	}
	for i, name := range builtins {
		if err := add(configs.ReadBuiltin(name)); err != nil {
			return nil, err
		}
		if i > 0 {
			continue
		}
		// The user's settings are above the first built-in configuration and
		// below the others, such as that of the demo. mini-swe-agent's file is
		// below mini's own, its variables in the shell are above.
		ofFiles, others := splitEnviron(os.Environ())
		compat, err := CompatLayers(ofFiles, name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, compat...)
		if path := userdirs.ConfigFile(); cmdutil.FileExists(path) {
			if err := add(configs.ReadFile(path)); err != nil {
				return nil, err
			}
		}
		if compat, err = CompatLayers(others, name); err != nil {
			return nil, err
		}
		layers = append(layers, compat...)
	}
	profile, err := c.profileLayers()
	if err != nil {
		return nil, err
	}
	layers = slices.Concat(layers, c.RecordedLayers, profile)
	c.commandLine = map[string]bool{}
	for _, l := range profile {
		c.commandLine[l.Name] = true
	}
	for _, arg := range c.Config {
		if err := add(configs.ReadArg(arg, ConfigDirs()...)); err != nil {
			return nil, err
		}
		c.commandLine[layers[len(layers)-1].Name] = true
	}
	for _, s := range settingFlags {
		f := c.FlagSet.Lookup(s.flag)
		key := cmp.Or(c.SettingOfFlag[s.flag], s.key)
		if f == nil || !f.Changed || key == "" {
			continue
		}
		value := flagValue(f)
		prefix, isPeerClass := peerClass(c.FlagSet)
		switch {
		case s.flag == "model-class" && isPeerClass:
			continue
		case s.flag == "model" && isPeerClass:
			value = strconv.Quote(prefix + f.Value.String())
		}
		if err := add(configs.ParseSetting("--"+s.flag, key, value)); err != nil {
			return nil, err
		}
		c.commandLine["--"+s.flag] = true
	}
	for _, l := range c.Combination {
		c.commandLine[l.Name] = true
	}
	layers = slices.Concat(layers, c.Combination, c.TopLayers)
	cfg, layers, local, err := mergeModel(layers, c.commandLine)
	if err != nil {
		return cfg, err
	}
	c.impliedLocal = local
	if vary := cfg.Vary(); len(vary) > 0 && !c.RunsSweeps {
		return cfg, usage.Errorf("%s: only mini bench runs the combinations of a sweep; use a file without vary", vary[0].Origin)
	}
	implied, err := modelClassLayers(cfg.Model.Class)
	if err != nil || len(implied) == 0 {
		return cfg, err
	}
	return configs.Merge(slices.Insert(layers, 1, implied...)...) // above the first built-in configuration
}

// SettingLayers returns a layer for each pair of key and value in settings. origin is the name of the
// layers.
func SettingLayers(origin string, settings [][2]string) ([]configs.Layer, error) {
	var layers []configs.Layer
	for _, s := range settings {
		l, err := configs.ParseSetting(origin, s[0], s[1])
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// modelClassLayers returns layers with the settings that a model class implies: for anthropic the
// name of the key variable, and the values of the variables of the class's provider.
func modelClassLayers(class string) ([]configs.Layer, error) {
	var layers []configs.Layer
	add := func(l configs.Layer, err error) error {
		layers = append(layers, l)
		return err
	}
	if class == "anthropic" {
		if err := add(configs.ParseSetting("model_class: anthropic", "model.api_key_env", "ANTHROPIC_API_KEY")); err != nil {
			return nil, err
		}
	}
	for _, v := range configs.ProviderVariables[class] {
		value, layer := os.Getenv(v.Name), v.Name
		if v.Key == "model.base_url" {
			value, layer = configs.ProviderURL(v.Name)
		}
		if value != "" {
			if err := add(configs.ParseSetting(layer, v.Key, strconv.Quote(value))); err != nil {
				return nil, err
			}
		}
	}
	return layers, nil
}

// flagValue returns the value of a flag as YAML, for --no-autosubmit the opposite value.
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
