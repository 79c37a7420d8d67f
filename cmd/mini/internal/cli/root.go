package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/convert"
	"github.com/minibench/mini/cmd/mini/internal/data"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/replay"
	"github.com/minibench/mini/cmd/mini/internal/report"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/system"
	"github.com/minibench/mini/cmd/mini/internal/task"
	"github.com/minibench/mini/internal/version"
)

// NewRoot returns the command mini with all its subcommands. The second interrupt
// cancels killCtx; that kills all sandboxes.
func NewRoot(killCtx context.Context, s cmdutil.Streams) *cobra.Command {
	opts := &task.Options{}
	root := &cobra.Command{
		Use:   "mini [-t TASK]",
		Short: "Run a coding agent that works through bash",
		Long: `mini runs a coding agent: a language model that works on software through bash
commands. It works on one task in the current folder, or on the instances of a
benchmark, each in its own container.`,
		Example: `  mini -m gpt-5-mini                            ask for a task, work on it here
  mini -m gpt-5-mini -t "make the tests pass"   work on one task here
  mini bench --subset demo                      five small repositories, no key
  mini bench --subset verified -w 8 -m gpt-5-mini -o runs/first
  mini doctor                                   check this machine`,
		Version:       version.Long(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          opts.Args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case settings.IsVersionOnly(cmd.Flags()):
				_, err := fmt.Fprintln(s.Out, "mini", version.Long())
				return err
			case cmd.Flags().NFlag() == 0 && !s.Interactive:
				return cmd.Help()
			}
			opts.HasTask = cmd.Flags().Changed("task")
			return task.Run(cmd.Context(), killCtx, s, opts)
		},
	}
	root.SetVersionTemplate("mini {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	opts.AddFlags(root.Flags())
	settings.AddVisualFlag(root.Flags())
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version; -v alone does the same"
	root.AddCommand(
		bench.New(killCtx, s), replay.New(killCtx, s), system.NewCtl(s), //nolint:contextcheck // cobra passes the context
		eval.New(killCtx, s), eval.NewGrade(s), eval.NewRegrade(s), //nolint:contextcheck // cobra passes the context
		report.New(s), report.NewRuns(s), report.NewCompare(s), report.NewInspect(s), report.NewView(s), report.NewLabel(s), system.NewShell(killCtx, s), //nolint:contextcheck // cobra passes the context
		convert.NewImport(s), convert.NewExport(s), convert.NewTrajectories(s), //nolint:contextcheck // cobra passes the context
		data.NewDatasets(s), data.NewImages(s), //nolint:contextcheck // cobra passes the context
		config.New(s), config.NewPolicy(s), config.NewSkills(s), config.NewNotes(s), newCompletion(s), //nolint:contextcheck // cobra passes the context
		system.NewDoctor(s), system.NewClean(s), system.NewKubernetes(s), system.NewFakeModel(s), //nolint:contextcheck // cobra passes the context
	)
	setHelp(root)
	setCompletions(root)
	return root
}
