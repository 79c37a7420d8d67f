// Package report implements mini report, runs, compare, inspect and label, which
// show runs and trajectories.
package report

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
)

// options holds the flags of mini report.
type options struct {
	instance string
	json     bool
	markdown bool
	tokens   bool
	page     htmlOptions
}

// New returns the command mini report.
func New(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "report [RUN...]",
		Short: "Show the results of a run or of one instance",
		Long: `Shows the results of a run: outcomes grouped by reason, cost, tokens, steps,
time, the most expensive and slowest instances, instances without a result,
verdicts, and why attempts are not resolved. With -i it shows one instance: its
error, labels, verdicts with the failed tests, attempts, and the last steps of the
attempt that counts.

If the rows of the dataset are on this machine, it also compares the patches that
do not resolve their instance with the gold patches.

With --html it writes the pages of mini view about one or more runs, and their
comparison, into one file. A browser opens it from disk; it loads nothing. The
file holds prompts, outputs and paths, and says so. Values of keys that mini
knows on this machine are removed.

Without RUN it shows the newest run in ` + cmdutil.DefaultRunsDir + `. mini report only reads the run's folder. The run may be finished, killed or
still running.`,
		Example: `  mini report runs/first
  mini report runs/first -i django__django-11099
  mini report runs/first --json | jq .totals.cost
  mini report runs/first runs/second --html report.html`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.page.file != "" && len(args) > 0:
				return nil
			case len(args) > 1:
				return usage.Errorf("mini report shows one run; to put %d into one file, add --html FILE; to compare them, use mini compare", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{
				{"json", "markdown"}, {"instance", "tokens"}, {"html", "tokens"}, {"html", "markdown"}, {"html", "json"}, {"html", "instance"},
			} {
				if cmd.Flags().Changed(pair[0]) && cmd.Flags().Changed(pair[1]) {
					return usage.Errorf("--%s and --%s cannot be combined", pair[0], pair[1])
				}
			}
			return run(cmd.Context(), a, o, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.instance, "instance", "i", "", "show the instance with this `ID`, or the only one whose id contains it")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	f.BoolVar(&o.tokens, "tokens", false, "show whether prompts continue the tokens before, for runs with --tokens")
	f.BoolVar(&o.markdown, "markdown", false, "print Markdown, for a pull request or an issue")
	o.page.addFlags(f)
	cmd.AddCommand(newSubmission(a))
	return cmd
}

// run prints the report on a run, or on one instance if it is named. With --html, it writes a file.
func run(ctx context.Context, a *app.App, o *options, args []string) error {
	if err := o.page.check(); err != nil {
		return err
	}
	if o.page.file != "" {
		dirs, err := runFolders(args)
		if err != nil {
			return err
		}
		return o.page.write(ctx, a, dirs, 0, compare.Drop)
	}
	dir, err := cmdutil.OneRunOrNewest(a.Err, "mini report", args)
	if err != nil {
		return err
	}
	run, err := runs.Read(dir)
	if err != nil {
		return cmdutil.RunFolderError(dir, err)
	}
	var content interface{ Doc() *doc.Doc }
	switch {
	case o.tokens:
		content = report.NewTokenReport(run)
	case o.instance == "":
		content, err = summaryOf(ctx, run)
	default:
		content, err = detailOf(run, o.instance)
	}
	if err != nil {
		return usage.Wrap(err)
	}
	if o.json {
		return cmdutil.WriteJSON(a.Out, content)
	}
	if o.markdown {
		return content.Doc().WriteMarkdown(a.Out)
	}
	return a.Print(content.Doc())
}

// summaryOf returns the report on a run. If the rows of its dataset are on this
// machine, it compares the patches with the gold patches.
func summaryOf(ctx context.Context, run *runs.Run) (report.Summary, error) {
	summary, err := ui.Explain(run, nil)
	if u := summary.Unresolved; u != nil && err == nil {
		err = u.AddGold(rows.GoldPatches(ctx, u.Datasets, u.IDsWithPatch()))
	}
	return summary, err
}

// detailOf returns the report on an instance of a run, or on an instance that has
// verdicts but no attempts.
func detailOf(run *runs.Run, instance string) (report.Detail, error) {
	recorded, err := run.Verdicts()
	if err != nil {
		return report.Detail{}, err
	}
	d, err := report.NewDetail(run, instance, time.Now())
	if err == nil {
		d.AddVerdicts(recorded, report.ReadPredictions(run))
	} else {
		var ok bool
		if d, ok = report.NewVerdictsDetail(recorded, instance); !ok {
			return d, err
		}
	}
	given, err := run.Labels()
	if err != nil {
		d.Unreadable = append(d.Unreadable, err.Error())
	}
	d.Labels = given[d.ID]
	return d, nil
}
