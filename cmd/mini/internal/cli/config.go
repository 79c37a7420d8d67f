package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/report"
)

func newConfig(s Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:     "config",
		Short:   "Set mini up; change, show and check settings",
		Example: "  mini config setup\n  mini config set agent.cost_limit 1.50\n  mini config show -c mine.yaml -m gpt-5-mini",
	}, newConfigSetup(s), newConfigSet(s), newConfigUnset(s), newConfigEdit(s), newConfigPath(s), newConfigShow(s), newConfigCheck(s), newConfigProfiles(s))
}

// configKinds are what `mini config show` can show, and the shipped
// configuration each begins with.
var configKinds = map[string]string{"bench": "swebench", "task": "mini"}

func newConfigShow(s Streams) *cobra.Command {
	o := &configFlags{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [bench|task] [KEY...]",
		Short: "Show every setting, and behind it where it is from",
		Long: `Shows every setting that mini bench (or mini itself: task) would use with the
same flags, as YAML that -c reads again, and behind each value where it is from.
A KEY shows only that setting, or that section.`,
		Example: `  mini config show
  mini config show environment
  mini config show task agent.step_limit -c mine.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := "bench"
			if len(args) > 0 && configKinds[args[0]] != "" {
				kind, args = args[0], args[1:]
			}
			return showConfig(cmd.Context(), s, o, kind, args, asJSON)
		},
	}
	f := cmd.Flags()
	o.flags(f)
	f.IntP("workers", "w", 1, "number of instances to run in parallel")
	f.BoolVar(&asJSON, "json", false, "print a list of {key, value, origin}")
	return cmd
}

func showConfig(ctx context.Context, s Streams, o *configFlags, kind string, keys []string, asJSON bool) error {
	cfg, err := o.mergeLocal(ctx, configKinds[kind])
	if err != nil {
		return err
	}
	if asJSON {
		entries, err := cfg.Entries(keys...)
		if err != nil {
			return err
		}
		return writeJSON(s.Out, entries)
	}
	data, err := cfg.Explained(keys...)
	if err != nil {
		return err
	}
	text := string(data)
	if len(keys) == 0 {
		text = "# Every setting, and where it is from. Any part of this can be given to -c.\n" + text
	}
	if s.OutTerminal {
		text = lines(text)
	}
	_, err = fmt.Fprint(s.Out, text)
	return err
}

func newConfigCheck(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Find the mistakes in files of settings",
		Long: `Checks each FILE (or key.sub=value) on top of the defaults, as -c would read it:
keys, values, and prompts rendered with a sample instance. Several are also
checked on top of each other, in their order. Without one it is your own file.`,
		Example: "  mini config check mine.yaml\n  mini config check team.yaml mine.yaml agent.step_limit=50",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if !exists(userConfig()) {
					return usagef("which file? There is none at %s; give its name: mini config check FILE", userConfigHint())
				}
				args = []string{userConfig()}
			}
			return checkConfigs(s, args)
		},
	}
}

// checkConfigs says of each argument that it is right, or all that is wrong.
func checkConfigs(s Streams, args []string) error {
	known := map[string]bool{} // a mistake is shown once
	var layers []configs.Layer
	wrong, found := 0, 0
	say := func(name string, errs []error) error {
		errs = slices.DeleteFunc(errs, func(err error) bool { return known[err.Error()] })
		if len(errs) == 0 {
			return nil
		}
		wrong++
		found += len(errs)
		for _, err := range errs {
			known[err.Error()] = true
			if _, werr := fmt.Fprintln(s.Out, lines(err.Error())); werr != nil {
				return fmt.Errorf("write what is wrong with %s: %w", name, werr)
			}
		}
		return nil
	}
	for _, arg := range args {
		l, err := configs.Read(arg, configDirs()...)
		layers = append(layers, l)
		errs := byLine(append(configs.All(err), checkLayers(l)...))
		if err := say(arg, errs); err != nil {
			return err
		}
		if len(errs) == 0 {
			if _, err := fmt.Fprintf(s.Out, "%s: ok\n", lines(arg)); err != nil {
				return err
			}
		}
	}
	if len(layers) > 1 {
		before := wrong
		if err := say("all", checkLayers(layers...)); err != nil {
			return err
		}
		if wrong > before {
			return usagef("one after the other, in this order, they have a mistake")
		}
	}
	if wrong > 0 {
		return usagef("%s in %d of %s", report.Count(found, "mistake"), wrong, report.Count(len(args), "file"))
	}
	return nil
}

// lineOf is where in a file a mistake is.
var lineOf = lazyregexp.New(`^[^ ]*?:(\d+): `)

// byLine sorts mistakes as they stand in the file; those without a line first.
func byLine(errs []error) []error {
	line := func(err error) int {
		m := lineOf.FindStringSubmatch(err.Error())
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1]) // the pattern matched digits
		return n
	}
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(line(a), line(b)) })
	return errs
}

// checkLayers are the mistakes that show only in values: those that make no
// sense, prompts that cannot be rendered, and what no container can have.
func checkLayers(layers ...configs.Layer) []error {
	base, err := configs.Shipped(configKinds["bench"])
	if err != nil {
		return []error{err}
	}
	cfg, err := configs.Merge(append([]configs.Layer{base}, layers...)...)
	if cfg == nil {
		return []error{err}
	}
	errs := configs.All(err)
	for _, e := range slices.Concat(checkPrompts(cfg), containerMistakes(cfg)) {
		if !slices.ContainsFunc(errs, func(known error) bool { return sameKey(known, e) }) {
			errs = append(errs, e)
		}
	}
	return errs
}

// sameKey says that two mistakes are in the same prompt: the first found, that
// it is Jinja for instance, explains the other.
func sameKey(a, b error) bool {
	for _, key := range configs.Keys() {
		if in := key + ": "; strings.Contains(a.Error(), in) && strings.Contains(b.Error(), in) {
			return true
		}
	}
	return a.Error() == b.Error()
}

// checkPrompts renders one prompt at a time, with an instance that has every
// column the prompt asks for, so that a mistake in one does not hide another.
func checkPrompts(cfg *configs.Resolved) []error {
	whole := cfg.Agent
	var errs []error
	for i := range prompts(&whole) {
		one := whole
		one.Compaction = agent.CompactOff
		for j, text := range prompts(&one) {
			if j != i {
				*text = ""
			}
		}
		if _, err := agent.New(one); err != nil {
			err = cfg.Locate(err)
			if !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// prompts are the templates of an agent.
func prompts(c *agent.Config) []*string {
	return []*string{
		&c.SystemTemplate, &c.InstanceTemplate, &c.ObservationTemplate, &c.FormatErrorTemplate,
		&c.SummaryTemplate, &c.TailTemplate, &c.StartupCommand,
	}
}
