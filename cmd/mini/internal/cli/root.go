package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
)

// newRoot is the tree of commands. kill is the context that ends only when
// mini is to stop at once.
func newRoot(kill context.Context, s Streams) *cobra.Command {
	opts := &taskOptions{}
	root := &cobra.Command{
		Use:   "mini [-t TASK]",
		Short: "Let a language model fix software in a sandbox, by bash alone",
		Long: `mini lets a language model work on software by bash alone: on one task in the
current folder, or on hundreds of benchmark instances in containers.`,
		Example: `  mini -m gpt-5-mini                            asks what to do, does it here
  mini -m gpt-5-mini -t "make the tests pass"   one task; asks before commands
  mini bench --subset demo                      five small repositories, no key
  mini bench --subset verified -w 8 -m gpt-5-mini -o runs/first
  mini doctor                                   is this machine ready?`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case onlyVersion(cmd.Flags()):
				_, err := fmt.Fprintln(s.Out, "mini", version())
				return err
			case cmd.Flags().NFlag() == 0 && !s.Terminal:
				return cmd.Help()
			}
			opts.hasTask = cmd.Flags().Changed("task")
			return runTask(cmd.Context(), kill, s, opts)
		},
	}
	root.SetVersionTemplate("mini {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	opts.flags(root.Flags())
	visualFlag(root.Flags())
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version, also -v alone"
	root.AddCommand(newBench(kill, s), newReplay(kill, s), newEval(kill, s), newShell(kill, s), newCtl(s)) //nolint:contextcheck // cobra hands commands their context
	root.AddCommand(newClean(s), newReport(s), newInspect(s), newImages(s), newGrade(s), newRegrade(s))    //nolint:contextcheck // cobra hands commands their context
	root.AddCommand(newConfig(s), newCompletion(s), newDatasets(s), newDoctor(s))                          //nolint:contextcheck // as above
	root.AddCommand(newImport(s), newExport(s), newTrajectories(s))                                        //nolint:contextcheck // as above
	root.AddCommand(newFakeModel(s), newPolicyCommand(s), newSkills(s), newNotes(s))                       //nolint:contextcheck // as above
	root.AddCommand(newPeerCommands()...)
	setHelp(root)
	setCompletions(root)
	return root
}

// flagError turns cobra's word into a usage error that says where help is.
func flagError(cmd *cobra.Command, err error) error {
	if own, ok := errors.AsType[*codedError](err); ok {
		return own
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s: %s is needed, %.60q is not; see %s --help",
			bad.GetFlag().Name, valueKind(bad.GetFlag().Value.Type()), bad.GetValue(), cmd.CommandPath())
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if answer := harnessFlagAnswers[unknown.GetSpecifiedName()]; answer != "" && cmd.Name() == "eval" {
			return usagef("--%s: %s", unknown.GetSpecifiedName(), answer)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := configs.Nearest(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
			return usagef("%w; did you mean --%s?", err, near)
		}
	}
	return usagef("%w; see %s --help", err, cmd.CommandPath())
}

// valueKind says what a flag takes, without Go's type names.
func valueKind(flagType string) string {
	switch flagType {
	case "bool":
		return "true or false"
	case "float64":
		return "a number"
	case "uint64":
		return "a whole number from 0 on"
	default:
		return "a whole number"
	}
}

// group returns a command for the commands below it, which prints its help when it
// is called without one of them.
func group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.Args = noArgs
	c.RunE = func(*cobra.Command, []string) error { return c.Help() }
	c.AddCommand(below...)
	return c
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if meant := strayLocal(cmd.Flags(), args); meant != "" {
		return usagef("did you mean %s?", meant)
	}
	if cmd == cmd.Root() && strings.Contains(args[0], " ") {
		return usagef("did you mean mini -t %.60q?", args[0])
	}
	if cmd.HasSubCommands() {
		text := fmt.Sprintf("unknown command %.60q", args[0])
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", cmp.Or(configs.Nearest(args[0], near), near[0]))
		}
		return before(errors.New(text + "; see " + cmd.CommandPath() + " --help"))
	}
	return usagef("%s takes flags only, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// exactlyOne is for commands that take one argument.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s takes %s, and nothing else; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// atLeastOne is for commands that take a list.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s takes %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// Version is set by the linker.
var Version = "dev"

func version() string {
	return fmt.Sprintf("%s (%s/%s, %s)", Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
