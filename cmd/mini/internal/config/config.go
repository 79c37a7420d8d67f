// Package config implements the commands mini config, mini policy, mini skills and
// mini notes.
package config

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

// New returns the command mini config.
func New(a *app.App) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:     "config",
		Short:   "Show, change and check settings",
		Example: "  mini config setup\n  mini config set agent.cost_limit 1.50\n  mini config show -c mine.yaml -m gpt-5-mini",
	}, newConfigSetup(a), newConfigSet(a), newConfigUnset(a), newConfigEdit(a), newConfigPath(a), newConfigShow(a), newConfigCheck(a), newConfigProfiles(a))
}

// BuiltinConfigByKind maps the first argument of mini config show to the name of a built-in
// configuration.
var BuiltinConfigByKind = map[string]string{"bench": "swebench", "task": "mini"}

// baseOf returns the name of the built-in configuration of mini bench, or of mini itself.
func baseOf(bench bool) string {
	if bench {
		return BuiltinConfigByKind["bench"]
	}
	return BuiltinConfigByKind["task"]
}

// ShowOptions are the flags of mini config show.
type ShowOptions struct {
	settings.Flags
	json bool
}

func newConfigShow(a *app.App) *cobra.Command {
	o := &ShowOptions{}
	cmd := &cobra.Command{
		Use:   "show [bench|task] [KEY...]",
		Short: "Show settings and their origins",
		Long: `Shows the settings that mini bench would use with the same flags. With "task",
it shows those of mini itself. The output is YAML that -c can read, with the
origin of each value in a comment. KEY selects a setting or a section.`,
		Example: `  mini config show
  mini config show environment
  mini config show task agent.step_limit -c mine.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			base := baseOf(true)
			if len(args) > 0 && BuiltinConfigByKind[args[0]] != "" {
				base, args = BuiltinConfigByKind[args[0]], args[1:]
			}
			return showConfig(cmd.Context(), a, o, base, args)
		},
	}
	f := cmd.Flags()
	o.AddFlags(f)
	f.IntP("workers", "w", 1, "number of instances to run in parallel")
	f.BoolVar(&o.json, "json", false, "print a list of {key, value, origin}")
	return cmd
}

func showConfig(ctx context.Context, a *app.App, o *ShowOptions, base string, keys []string) error {
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, base)
	if err != nil {
		return err
	}
	if o.json {
		entries, err := cfg.Entries(keys...)
		if err != nil {
			return err
		}
		return cmdutil.WriteJSON(a.Out, entries)
	}
	data, err := cfg.AnnotatedYAML(keys...)
	if err != nil {
		return err
	}
	text := string(data)
	if len(keys) == 0 {
		text = "# All settings and their origins. Any part of this can be passed to -c.\n" + text
	}
	return a.PrintText(text)
}

func newConfigCheck(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check configuration files",
		Long: `Checks each FILE (or key.sub=value) on top of the defaults: keys, values, and
prompts rendered with a sample instance. It also checks several files on top of
each other, in their order. Without arguments, it checks your own file.

It also lists what mini would start, reach and mount outside of sandboxes:
programs on this machine, addresses, and folders. Read this before you use a
file that another person wrote.`,
		Example: "  mini config check mine.yaml\n  mini config check team.yaml mine.yaml agent.step_limit=50",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if !cmdutil.FileExists(userdirs.ConfigFile()) {
					return usage.Errorf("there is no file %s; name one: mini config check FILE", userdirs.ConfigFileHint())
				}
				args = []string{userdirs.ConfigFile()}
			}
			return checkConfigs(a, args)
		},
	}
}

// checkConfigs prints the errors of each file or setting, or that it is valid. It also
// checks several together, in their order. It returns an error if it printed one.
func checkConfigs(a *app.App, args []string) error {
	printed := map[string]bool{} // texts of the printed errors
	var b strings.Builder
	invalidCount, errorCount := 0, 0
	report := func(errs []error) {
		errs = slices.DeleteFunc(errs, func(err error) bool { return printed[err.Error()] })
		if len(errs) > 0 {
			invalidCount++
		}
		errorCount += len(errs)
		for _, err := range errs {
			printed[err.Error()] = true
			fmt.Fprintln(&b, cmdutil.Sanitize(err.Error()))
		}
	}
	var layers []configs.Layer
	for _, arg := range args {
		layer, err := configs.ReadArg(arg, settings.ConfigDirs()...)
		layers = append(layers, layer)
		cfg, layerErrs := checkLayers("bench", layer)
		errs := sortByLine(append(configs.SplitErrors(err), layerErrs...))
		if len(errs) == 0 {
			fmt.Fprintf(&b, "%s: ok\n", cmdutil.Sanitize(arg))
			for _, line := range cfg.Outside().List() {
				fmt.Fprintf(&b, "  %s\n", text.Printable(line))
			}
		}
		report(errs)
	}
	invalidFiles := invalidCount
	if len(layers) > 1 {
		_, errs := checkLayers("bench", layers...)
		report(errs)
	}
	_, err := io.WriteString(a.Out, b.String())
	switch {
	case err != nil:
		return err
	case invalidCount > invalidFiles:
		return usage.Errorf("the files are invalid together, in this order")
	case invalidCount > 0:
		return usage.Errorf("%s in %d of %s", text.Count(errorCount, "error"), invalidCount, text.Count(len(args), "file"))
	}
	return nil
}

// lineNumber matches the file and line at the beginning of an error.
var lineNumber = lazyregexp.New(`^[^ ]*?:(\d+): `)

// sortByLine sorts errors by their lines. Errors without a line come first.
func sortByLine(errs []error) []error {
	line := func(err error) int {
		m := lineNumber.FindStringSubmatch(err.Error())
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1]) // the pattern matched digits
		return n
	}
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(line(a), line(b)) })
	return errs
}

// checkLayers merges the layers onto the built-in configuration of a kind of run. It returns the
// errors that appear only then: invalid values, prompts that cannot be rendered, and invalid
// settings of containers. The configuration is nil if it cannot be merged.
func checkLayers(kind string, layers ...configs.Layer) (*configs.Resolved, []error) {
	base, err := configs.ReadBuiltin(BuiltinConfigByKind[kind])
	if err != nil {
		return nil, []error{err}
	}
	cfg, err := settings.MergeModel(append([]configs.Layer{base}, layers...)...)
	if cfg == nil {
		return nil, []error{err}
	}
	errs := configs.SplitErrors(err)
	for _, checkErr := range slices.Concat(checkPrompts(cfg), envopen.ContainerErrors(cfg)) {
		if !slices.ContainsFunc(errs, func(known error) bool { return sameKey(known, checkErr) }) {
			errs = append(errs, checkErr)
		}
	}
	return cfg, errs
}

// sameKey reports whether two errors are about the same setting. One of them usually
// explains the other.
func sameKey(a, b error) bool {
	for _, key := range configs.Keys() {
		if prefix := key + ": "; strings.Contains(a.Error(), prefix) && strings.Contains(b.Error(), prefix) {
			return true
		}
	}
	return a.Error() == b.Error()
}

// checkPrompts returns the errors of parsing the prompts and of rendering them with
// an instance that has every column that they use.
func checkPrompts(cfg *configs.Resolved) []error {
	agentConfig := cfg.Agent
	agentConfig.Compaction = agent.CompactionOff // only the prompts are checked here
	_, err := agent.New(agentConfig)
	if err == nil {
		return nil
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for i, err := range errs {
		errs[i] = cfg.Locate(err)
	}
	return errs
}

// ProfilesOptions are the flags of mini config profiles.
type ProfilesOptions struct{ json bool }

func newConfigProfiles(a *app.App) *cobra.Command {
	o := &ProfilesOptions{}
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List profiles for --profile",
		Long: `Lists the profiles that mini and mini bench accept with --profile: the built-in
ones, and the YAML files in the folder "profiles" beside your config.yaml. Your
profile overrides a built-in one of the same name. To show the settings of a
profile, run mini config show --profile NAME.`,
		Example: "  mini config profiles\n  mini config show task --profile coder",
		Args:    cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			profiles, err := configs.Profiles(configs.ProfileDirs()...)
			if err != nil {
				return usage.Wrap(err)
			}
			if o.json {
				return cmdutil.WriteJSON(a.Out, profiles)
			}
			var b strings.Builder
			for _, p := range profiles {
				origin := ""
				if p.Path != "" {
					origin = "  (" + p.Path + ")"
				}
				fmt.Fprintf(&b, "%-12s %s\n", p.Name, p.Description+origin)
			}
			_, err = io.WriteString(a.Out, cmdutil.Sanitize(b.String()))
			return err
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a list of {name, about, path}")
	return cmd
}
