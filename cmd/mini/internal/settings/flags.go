// Package settings resolves the configuration of a command from layers: built-in
// defaults, the user's file, environment variables of mini-swe-agent, profiles, -c,
// flags and a local model server.
package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/trajectories"
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
	layers         []configs.Layer // those of Collect; nil if each merge reads them again
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
	f.String("profile", "", "`NAME` of a profile (coder, reviewer, benchmark), or its file")
	f.String("model-class", "", "client of the model: openai, anthropic or scripted")
	f.String("environment-class", "", "sandbox: docker, local, bubblewrap or kubernetes")
	f.Float64P("cost-limit", "l", 0, "cost limit of an attempt in `USD` (default 3; 0: none)")
	f.Bool("no-autosubmit", false, "do not submit the diff when an attempt reaches a limit")
	f.Bool("allow-destructive", false, "run commands such as rm -rf / that are refused otherwise on this machine")
	f.String("agent-class", "", "") // of mini-swe-agent
	f.Lookup("agent-class").Hidden = true
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
	{"allow-destructive", "policy.allow_destructive"},
	{"replies", "model.replies"},
	{"tokens", "model.tokens"},
	{"workers", "run.workers"},
	{"attempts", "run.attempts"},
	{"network", "environment.network"},
	{"keep", "run.keep"},
	{"task-env", "environment.task_env"},
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
	if c.FlagSet.Changed("visual") {
		return nil, usage.Errorf("--visual: leave it out; a session is shown so by itself, and --plain shows lines only")
	}
	cfg, err := c.merge(ctx, true, builtins)
	if err != nil || !cfg.UsesModel() {
		return cfg, err
	}
	if err := CheckModelNames(cfg); err != nil {
		return cfg, err
	}
	return cfg, c.checkProviderKey(cfg)
}

// Merge merges the layers of Overlay and checks their values. If --local is set, it adds the settings of
// resolveLocal as the highest layers, such as the address of the server, the name of a model and a
// price of zero.
func (c *Flags) Merge(ctx context.Context, builtins ...string) (*configs.Resolved, error) {
	return c.merge(ctx, false, builtins)
}

// merge implements Merge. If isImplied is set, names such as ollama/NAME stand for --local, too.
func (c *Flags) merge(ctx context.Context, isImplied bool, builtins []string) (*configs.Resolved, error) {
	overlay, err := c.Overlay(builtins...)
	if err != nil {
		return nil, err
	}
	value, label := "", ""
	switch f := c.FlagSet.Lookup("local"); {
	case f == nil:
	case f.Changed:
		value, label = f.Value.String(), "--local"
	case isImplied && c.impliedLocal != "":
		value, label = c.impliedLocal, "--local="+c.impliedLocal+", from the name of the model"
	}
	if label != "" {
		if err := c.resolveLocal(ctx, overlay, value, label); err != nil {
			return nil, err
		}
		if overlay, err = c.Overlay(builtins...); err != nil {
			return nil, err
		}
	}
	return overlay.Check()
}

// Overlay returns the overlay of the layers, lowest first: the first built-in configuration, the
// settings that the model class implies (such as OPENAI_BASE_URL), mini-swe-agent's .env file, the
// user's file, the shell's variables of mini-swe-agent, the other built-in configurations,
// RecordedLayers, the profile, -c, flags, Combination and TopLayers. What the name of the model implies
// comes with the name; see implyModel.
func (c *Flags) Overlay(builtins ...string) (*configs.Overlay, error) {
	layers := c.layers
	if layers == nil {
		var err error
		if layers, err = c.collect(builtins); err != nil {
			return nil, err
		}
	}
	layers = slices.Concat(layers, c.Combination, c.TopLayers)
	if slices.Contains(builtins, Scripted) {
		layers = dropScripted(layers, c.isCommandLine)
	}
	layers, local, err := implyModel(layers, c.isCommandLine)
	if err != nil {
		return nil, err
	}
	c.impliedLocal = local
	overlay := configs.NewOverlay(layers...)
	if vary := overlay.Vary(); len(vary) > 0 && !c.RunsSweeps {
		return nil, usage.Errorf("%s: only mini bench runs the combinations of a sweep; use a file without vary", vary[0].Origin)
	}
	if builtins[0] == "mini" {
		bounds, err := boundTask(overlay)
		if err != nil {
			return nil, err
		}
		layers = append(layers, bounds...)
	}
	implied, err := modelClassLayers(overlay.Value("model.model_class"))
	if err != nil {
		return nil, err
	}
	return configs.NewOverlay(slices.Insert(layers, 1, implied...)...), nil // above the first built-in configuration
}

// Collect reads the layers below Combination. Later calls of Overlay use them and read no files.
func (c *Flags) Collect(builtins ...string) (err error) {
	c.layers, err = c.collect(builtins)
	return err
}

// collect returns the layers below Combination, and sets commandLine.
func (c *Flags) collect(builtins []string) ([]configs.Layer, error) {
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
		ofFile, ofShell, err := compatLayers(name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, ofFile...)
		if path := userdirs.ConfigFile(); cmdutil.FileExists(path) {
			if err := add(configs.ReadFile(path)); err != nil {
				return nil, err
			}
		}
		layers = append(layers, ofShell...)
	}
	var profile []configs.Layer
	if f := c.FlagSet.Lookup("profile"); f != nil && f.Changed {
		l, err := configs.ReadProfile(c.Profile(), configs.ProfileDirs()...)
		if err != nil {
			return nil, err
		}
		profile = []configs.Layer{l}
	}
	layers = slices.Concat(layers, c.RecordedLayers, profile)
	c.commandLine = map[string]bool{}
	for _, l := range profile {
		c.commandLine[l.Name] = true
	}
	for _, arg := range c.Config {
		l, err := configs.ReadArg(arg, ConfigDirs()...)
		if err == nil && l.Name == layers[0].Name { // as the lowest layer already; a configuration of mini-swe-agent may add the protocol
			protocol := l.Value("agent.protocol")
			if protocol == "" {
				continue
			}
			l, err = configs.ParseSetting("-c "+arg, "agent.protocol", protocol)
		}
		if err := add(l, err); err != nil {
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
		value := f.Value.String()
		prefix, isPeerClass := peerClass(c.FlagSet)
		switch {
		case s.flag == "model-class" && isPeerClass:
			continue
		case s.flag == "model" && isPeerClass:
			value = strconv.Quote(prefix + value)
		case s.flag == "no-autosubmit":
			value = strconv.FormatBool(value != "true")
		case f.Value.Type() == "string":
			value = strconv.Quote(value)
		}
		if err := add(configs.ParseSetting("--"+s.flag, key, value)); err != nil {
			return nil, err
		}
		c.commandLine["--"+s.flag] = true
	}
	return layers, nil
}

// isCommandLine reports whether the command line, or the combination of a sweep, has a layer.
func (c *Flags) isCommandLine(layer string) bool {
	return c.commandLine[layer] || slices.ContainsFunc(c.Combination, func(l configs.Layer) bool { return l.Name == layer })
}

// Scripted is the built-in configuration of replies from a file.
const Scripted = "scripted"

// dropScripted removes the configuration Scripted from layers if explicit layers name a model,
// a route or a class, so that the named model is called. An explicit class "scripted" keeps it.
func dropScripted(layers []configs.Layer, isExplicit func(layer string) bool) []configs.Layer {
	overlay := configs.NewOverlay(layers...)
	_, isNamed := overlay.IsSet("model.model_name", isExplicit)
	_, isRouted := overlay.IsSet("model.route", isExplicit)
	_, hasClass := overlay.IsSet("model.model_class", isExplicit)
	if hasClass && overlay.Value("model.model_class") == Scripted || !hasClass && !isNamed && !isRouted {
		return layers
	}
	return slices.DeleteFunc(layers, func(l configs.Layer) bool { return l.IsBuiltin(Scripted) })
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

// PrintCostNote validates the cost limits and prints a note about limits that cannot be
// enforced.
func PrintCostNote(w io.Writer, cfg *configs.Resolved) error {
	if !cfg.UsesModel() {
		return nil
	}
	note, err := modelopen.CheckCostLimits(cfg)
	if err != nil || note == "" {
		return err
	}
	_, err = fmt.Fprintln(w, cmdutil.FormatNote(note))
	return err
}

// RecordedSetting returns the value of a setting from the header of a journal, or nil if the header
// does not contain it.
func RecordedSetting(h trajectories.Header, key string) any {
	var config map[string]any
	_ = json.Unmarshal(h.Config, &config) // the configuration may be missing, or that of another agent
	section, name, _ := strings.Cut(key, ".")
	values, _ := config[section].(map[string]any)
	return values[name]
}

// Profile returns the value of --profile, or "".
func (c *Flags) Profile() string {
	if f := c.FlagSet.Lookup("profile"); f != nil && f.Changed {
		return f.Value.String()
	}
	return ""
}

// ProfileCompletions returns the names of the profiles with descriptions, for shell completion.
func ProfileCompletions() []string {
	profiles, _ := configs.Profiles(configs.ProfileDirs()...) // omit unreadable profiles
	completions := make([]string, len(profiles))
	for i, p := range profiles {
		completions[i] = cobra.CompletionWithDesc(p.Name, p.Description)
	}
	return completions
}
