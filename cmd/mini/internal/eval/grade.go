package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/grade/savedlogs"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// GradeOptions are the flags of mini grade.
type GradeOptions struct {
	datasets                           rows.DatasetFlags
	skipUnknown, verbose, dryRun, json bool
}

// NewGrade returns the command mini grade.
func NewGrade(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grade --subset SET PATH... | RUN",
		Short: "Grade saved test logs without running containers",
		Long: `Grades the logs of past evaluations as the official SWE-bench harness does.
A log is a file test_output.txt or test_output.txt.gz in a folder named after
its instance. An empty patch.diff beside a log means that there was no patch.
If each model has its own folder, mini grade prints a rate for each model.
It skips unreadable files and links that lead out of PATH, and exits with 3.
It runs nothing and writes nothing.

With RUN, the folder of an evaluation by mini eval, it grades the run's logs
again, for example after a parser or the dataset has changed. It loads the
current version of the dataset that the run names, and lists the verdicts that
changed. It rewrites reports and summaries; each record keeps its earlier
verdicts. Verdicts whose logs cannot be graded stay unchanged.`,
		Example: `  mini grade --subset verified logs/run_evaluation/first
  mini grade --subset lite --subset verified --json LOGS | jq .resolved
  mini grade runs/first --dry-run`,
		Args: cmdutil.AtLeastOne("folders with logs"),
	}
	o := gradeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && cmdutil.FileExists(filepath.Join(args[0], verdicts.DirName)) {
			return regradeRun(cmd.Context(), a, o, args[0])
		}
		return gradeLogs(cmd.Context(), a, o, args)
	}
	return cmd
}

// gradeFlags adds the flags of mini grade to cmd and returns their values.
func gradeFlags(cmd *cobra.Command) *GradeOptions {
	o := &GradeOptions{}
	f := cmd.Flags()
	o.datasets.AddFlags(f)
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "skip logs that cannot be graded")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each log, even if there are many")
	f.BoolVar(&o.dryRun, "dry-run", false, "with RUN: show what would change, without writing it")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each log; with RUN: one document")
	return o
}

// maxListed is the largest number of logs for which mini grade prints a line for each
// log without --verbose.
const maxListed = 20

func gradeLogs(ctx context.Context, a *app.App, o *GradeOptions, paths []string) error {
	if len(o.datasets.Subsets) == 0 {
		return usage.Errorf("--subset is required: demo, verified, lite ..., or a file of rows; see mini datasets list")
	}
	search, err := savedlogs.FindLogs(paths)
	if err != nil {
		return usage.Wrap(err)
	}
	sources, err := o.datasets.OpenAll(ctx, a.Streams)
	if err != nil {
		return usage.Wrap(err)
	}
	known, err := savedlogs.ReadRows(ctx, sources, search.IDs())
	if err != nil {
		return usage.Wrap(err)
	}
	folders := slices.DeleteFunc(slices.Clone(search.Folders), func(f savedlogs.Folder) bool {
		_, ok := known.TestSpecs[f.InstanceID]
		return !ok
	})
	switch problem := o.rowProblem(known); {
	case problem != "" && !o.skipUnknown:
		return usage.Errorf("%s; pass --skip-unknown to skip them", problem)
	case len(folders) == 0:
		return usage.Errorf("no log can be graded: %s", problem)
	case problem != "":
		_, _ = fmt.Fprintf(a.Err, "mini: skipped %s: %s\n",
			text.Count(len(search.Folders)-len(folders), "log"), text.Printable(problem)) // best effort
	}
	cmdutil.SetMemory(400, 224<<20)
	var totals savedlogs.Totals
	sets := savedlogs.GroupByPredictions(folders)
	listsLogs := o.verbose || len(folders) <= maxListed
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	for r := range (savedlogs.Grader{}).Grade(ctx, folders, known.TestSpecs) {
		if ctx.Err() != nil {
			break
		}
		line := r.Line(known)
		totals.Add(line, r.Bytes)
		if name, ok := sets[r.Path]; ok {
			totals.AddToSet(name, line)
		}
		switch {
		case o.json:
			err = enc.Encode(line)
		case listsLogs:
			err = a.Print(report.VerdictDoc(line))
		}
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n := len(search.WithoutLog); n > 0 {
		_, _ = fmt.Fprintf(a.Err, "mini: %s of evaluations without a log: %s\n",
			text.Count(n, "folder"), text.Printable(text.List(search.WithoutLog))) // best effort
	}
	for _, skipped := range search.Skipped {
		_, _ = fmt.Fprintln(a.Err, "mini: skipped", text.Printable(skipped.Path+": "+skipped.Reason)) // best effort
	}
	if !o.json {
		d := &doc.Doc{}
		if listsLogs {
			d.Blank()
		}
		d.Add(report.TotalsDoc(totals))
		for _, edition := range known.Editions {
			d.Line(0, "%s", rows.FormatSource(edition))
		}
		if err := a.Print(d); err != nil {
			return err
		}
	}
	if totals.Graded() < totals.Logs || len(search.Skipped) > 0 {
		return cmdutil.ErrIncomplete
	}
	return nil
}

// rowProblem describes the logs without a row and the rows that cannot be graded. It
// returns "" if all logs can be graded.
func (o *GradeOptions) rowProblem(known savedlogs.Rows) string {
	var parts []string
	if n := len(known.Unknown); n > 0 {
		parts = append(parts, fmt.Sprintf("%s has no row for the %s %s",
			strings.Join(o.datasets.Subsets, ", "), text.Plural(n, "folder"), text.List(known.Unknown)))
	}
	if n := len(known.Ungradable); n > 0 {
		var texts []string
		for _, err := range known.Ungradable {
			texts = append(texts, err.Error())
		}
		first := slices.MinFunc(texts, datasets.CompareNatural)
		if n > 1 {
			first += fmt.Sprintf(" (and %d more like it)", n-1)
		}
		parts = append(parts, first)
	}
	return strings.Join(parts, "; ")
}
