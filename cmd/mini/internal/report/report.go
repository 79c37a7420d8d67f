// Package report implements mini report, runs, compare and inspect, which show runs
// and trajectories.
package report

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// New returns the command mini report.
func New(s cmdutil.Streams) *cobra.Command {
	var instance string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Show the results of a run or of one instance",
		Long: `Shows the results of a run: outcomes grouped by reason, cost, tokens, steps,
time, the most expensive and slowest instances, instances without a result, and
verdicts. With -i it shows one instance: its error, its verdicts with the failed
tests, its attempts, and the last steps of the attempt that counts.

mini report only reads the run's folder. The run may be finished, killed or
still running.`,
		Example: `  mini report runs/first
  mini report runs/first -i django__django-11099
  mini report runs/first --json | jq .totals.cost`,
		Args: cmdutil.ExactlyOneRun,
		RunE: func(_ *cobra.Command, args []string) error {
			return showRun(s, args[0], instance, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&instance, "instance", "i", "", "show the instance with this `ID`")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	cmd.AddCommand(newSubmission(s))
	return cmd
}

// showRun prints the report on a run, or on one instance if it is named.
func showRun(s cmdutil.Streams, dir, instance string, asJSON bool) error {
	run, err := runner.ReadRun(dir)
	if err != nil {
		return cmdutil.RunFolderError(dir, err)
	}
	var content interface {
		Write(w io.Writer, width int) error
	}
	if instance == "" {
		if content, err = ui.Summarize(run, nil); err != nil {
			return usage.Wrap(err)
		}
	} else {
		if content, err = detailOf(run, instance); err != nil {
			return usage.Wrap(err)
		}
	}
	if asJSON {
		return cmdutil.WriteJSON(s.Out, content)
	}
	return content.Write(s.Out, ui.Width(s.Out))
}

// detailOf returns the report on an instance of a run, or on an instance that has
// verdicts but no attempts.
func detailOf(run *runner.Run, instance string) (report.Detail, error) {
	recorded, err := verdicts.Read(run.Dir)
	if err != nil {
		return report.Detail{}, err
	}
	d, err := report.NewDetail(run, instance, time.Now())
	if err != nil {
		if d, ok := report.NewVerdictsDetail(recorded, instance); ok {
			return d, nil
		}
		return d, err
	}
	d.AddVerdicts(recorded, report.ReadPredictions(run))
	return d, nil
}
