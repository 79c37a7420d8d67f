package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
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
		Example: `  mini -m gpt-5-mini -t "make the tests pass"     one task, here; asks before each command
  mini bench --subset demo                        five small repositories, replies scripted
  mini bench --subset verified.jsonl.gz -w 8 -m gpt-5-mini -o runs/first`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("task") {
				return cmd.Help()
			}
			return runTask(cmd.Context(), kill, s, opts)
		},
	}
	root.SetVersionTemplate("mini {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	opts.flags(root.Flags())
	root.AddCommand(newBench(kill, s), newClean(s)) //nolint:contextcheck // cobra hands commands their context
	return root
}

// flagError turns cobra's word into a usage error that says where help is.
func flagError(cmd *cobra.Command, err error) error {
	return usagef("%w; see %s --help", err, cmd.CommandPath())
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		text := fmt.Sprintf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", near[0])
		}
		return &usageError{errors.New(text + "; see mini --help")}
	}
	return usagef("%s takes flags only, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// Version is set by the linker.
var Version = "dev"

func version() string {
	return fmt.Sprintf("%s (%s/%s, %s)", Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
