package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model/localservers"
)

// Group returns a command for the commands below it, which prints its help when it
// is called without one of them.
func Group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.Args = NoArgs
	c.RunE = func(*cobra.Command, []string) error { return c.Help() }
	c.AddCommand(below...)
	return c
}

// NoArgs rejects arguments and suggests what the user may have meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if meant := suggestLocalValue(cmd.Flags(), args); meant != "" {
		return usage.Errorf("did you mean %s?", meant)
	}
	if cmd == cmd.Root() && strings.Contains(args[0], " ") {
		return usage.Errorf("did you mean mini -t %.60q?", args[0])
	}
	if cmd.HasSubCommands() {
		text := fmt.Sprintf("unknown command %.60q", args[0])
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", cmp.Or(configs.ClosestName(args[0], near), near[0]))
		}
		return usage.Wrap(errors.New(text + "; see " + cmd.CommandPath() + " --help"))
	}
	return usage.Errorf("%s takes flags only, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// FlagsOnly is NoArgs for commands whose single argument is likely the value of a flag.
func FlagsOnly(name, flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && !cmd.Flags().Changed(name) {
			return usage.Errorf("%s takes flags only; did you mean %s %s?", cmd.CommandPath(), flag, args[0])
		}
		return NoArgs(cmd, args)
	}
}

// ExactlyOne requires one argument, which what describes.
func ExactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage.Errorf("%s takes %s, and nothing else; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// AtLeastOne requires one or more arguments, which what describes.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage.Errorf("%s takes %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// suggestLocalValue returns the --local=SERVER that the user meant by "--local SERVER", or "".
func suggestLocalValue(f *pflag.FlagSet, args []string) string {
	if l := f.Lookup("local"); l == nil || len(args) == 0 || !l.Changed || l.Value.String() != AnyLocalServer {
		return ""
	}
	if _, err := localservers.Parse(args[0]); err != nil {
		return ""
	}
	return "--local=" + args[0]
}

// AnyLocalServer is the value of --local without a value: any server that responds.
const AnyLocalServer = "any"
