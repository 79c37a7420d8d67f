package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/convert"
	"github.com/minibench/mini/cmd/mini/internal/data"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/replay"
	"github.com/minibench/mini/cmd/mini/internal/report"
	"github.com/minibench/mini/cmd/mini/internal/serve"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/system"
	"github.com/minibench/mini/cmd/mini/internal/task"
	"github.com/minibench/mini/internal/version"
)

// NewRoot returns the command mini with all its subcommands.
func NewRoot(a *app.App) *cobra.Command {
	opts := &task.Options{}
	root := &cobra.Command{
		Use:   "mini [-t TASK]",
		Short: "Run a coding agent that works through bash",
		Long: `mini runs a coding agent: a language model that works on software through bash
commands. It works on one task in the current folder, or on the instances of a
benchmark, each in its own container.`,
		Example: `  mini -m gpt-5-mini                            ask for a task, work on it here
  mini -m gpt-5-mini -t "make the tests pass"   work on one task here
  mini -p "why do the tests fail?"              print only the answer
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
				_, err := fmt.Fprintln(a.Out, "mini", version.Long())
				return err
			case cmd.Flags().NFlag() == 0 && !a.Interactive:
				return cmd.Help()
			}
			opts.HasTask = cmd.Flags().Changed("task")
			return task.Run(cmd.Context(), a, opts)
		},
	}
	root.SetVersionTemplate("mini {{.Version}}\n")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(flagError)
	opts.AddFlags(root.Flags())
	settings.AddVisualFlag(root.Flags())
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version; -v alone does the same"
	root.AddCommand(
		bench.New(a), replay.New(a), serve.New(a), system.NewCtl(a),
		eval.New(a), eval.NewGrade(a), eval.NewRegrade(a),
		report.New(a), report.NewRuns(a), report.NewCompare(a), report.NewInspect(a), report.NewView(a), report.NewLabel(a), system.NewShell(a),
		convert.NewImport(a), convert.NewExport(a),
		data.NewDatasets(a), data.NewImages(a),
		config.New(a), config.NewPolicy(a), config.NewSkills(a), config.NewNotes(a), newCompletion(a),
		system.NewDoctor(a), system.NewClean(a), system.NewKubernetes(a),
	)
	setHelp(root)
	setCompletions(root)
	return root
}
