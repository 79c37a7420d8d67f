package cli

import (
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

func newReport(s Streams) *cobra.Command {
	var instance string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Show the results of a run, or how one of its instances ended",
		Long: `Shows the results of a run from the files in its folder: outcomes with the
reasons grouped, cost, tokens, steps, time and where it went, the most expensive
and the slowest instances, those without a result, and the verdicts there are.
With -i it shows one instance: its error, its verdicts with the tests that
failed, its attempts, and the last steps of the one that counts.

The run may be finished, killed, or at work: nothing is written, and nobody is
kept from writing.`,
		Example: `  mini report runs/first
  mini report runs/first -i django__django-11099
  mini report runs/first --json | jq .totals.cost`,
		Args: func(_ *cobra.Command, args []string) error { return oneRun(args) },
		RunE: func(_ *cobra.Command, args []string) error {
			return showRun(s, args[0], instance, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&instance, "instance", "i", "", "show only this `ID`, and its last steps")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	_ = cmd.RegisterFlagCompletionFunc("instance", completeInstance) // fails for flags that do not exist
	cmd.AddCommand(newSubmission(s))
	return cmd
}

// completeInstance offers the ids of the run on the command line.
func completeInstance(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	run, err := runner.ReadRun(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, in := range run.Instances {
		ids = append(ids, report.Printable(in.ID))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// oneRun checks the arguments.
func oneRun(args []string) error {
	switch {
	case len(args) == 1 && args[0] != "":
		return nil
	case len(args) > 1:
		return usagef("mini report takes one run, not %d; see mini report --help", len(args))
	}
	if near := newestRun(defaultRuns); near != "" {
		return usagef("which run? The newest one here: mini report %s", near)
	}
	return usagef("which run? Give the folder that mini bench -o wrote: mini report FOLDER")
}

func showRun(s Streams, dir, instance string, asJSON bool) error {
	run, err := runner.ReadRun(dir)
	if err != nil {
		return noRun(dir, err)
	}
	var shown interface {
		Write(w io.Writer, width int) error
	}
	if instance == "" {
		if shown, err = glanceOf(run, nil); err != nil {
			return before(err)
		}
	} else {
		if shown, err = detailOf(run, instance); err != nil {
			return before(err)
		}
	}
	if asJSON {
		enc := json.NewEncoder(s.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(shown)
	}
	return shown.Write(s.Out, widthOf(s.Out))
}

// glanceOf is a run at a glance, with its verdicts.
func glanceOf(run *runner.Run, ids []string) (report.Glance, error) {
	now := time.Now()
	found, err := verdicts.Read(run.Dir)
	if err != nil {
		return report.Glance{}, err
	}
	g := report.NewGlance(run, ids, now)
	g.NextIsSaid = run.Manifest.Model.Class == importedClass // no command makes what is left
	g.Unread = append(g.Unread, found.Unread...)
	g.Verdicts = report.Scores(found, run, ids, now)
	g.Evaluated(found, run)
	return g, nil
}

// detailOf is one instance of a run, with the verdicts on it.
func detailOf(run *runner.Run, instance string) (report.Detail, error) {
	found, err := verdicts.Read(run.Dir)
	if err != nil {
		return report.Detail{}, err
	}
	d, err := report.NewDetail(run, instance, time.Now())
	if err != nil {
		if judged, ok := report.JudgedOnly(found, instance); ok {
			return judged, nil
		}
		return d, err
	}
	d.Judge(found, report.SubmissionsOf(run))
	return d, nil
}

// glance ends a batch: what came of these instances, from the run's files.
func glance(w io.Writer, sum runner.Summary, dir string, ids []string) error {
	run, err := runner.ReadRun(dir)
	if err != nil {
		return err
	}
	g, err := glanceOf(run, ids)
	if err != nil {
		return err
	}
	g.State = report.Finished                                                     // else it would tell of the mini that is speaking
	g.NextIsSaid = sum.Unstarted > 0 || sum.Classes[trajectories.Interrupted] > 0 // an interrupt ends with how to go on
	return g.Write(w, widthOf(w))
}

// Widths of what is shown, in characters.
const (
	plainWidth = 100 // where there is no terminal
	leastWidth = 40
	mostWidth  = 120
)

// widthOf is how wide lines may be.
func widthOf(w io.Writer) int {
	f, _ := w.(*os.File)
	if width := terminalWidth(f); width > 0 {
		return min(width, mostWidth)
	}
	return plainWidth
}

// terminalWidth is how wide a terminal is, and 0 where there is none.
func terminalWidth(f *os.File) int {
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 0
	}
	return max(width, leastWidth)
}
