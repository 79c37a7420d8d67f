package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/grade/savedlogs"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// gradeOptions holds the flags of mini grade.
type gradeOptions struct {
	rows.DatasetFlags
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
func gradeFlags(cmd *cobra.Command) *gradeOptions {
	o := &gradeOptions{}
	f := cmd.Flags()
	f.SortFlags = false
	o.AddFlags(f)
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "skip logs that cannot be graded")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each log, even if there are many")
	f.BoolVar(&o.dryRun, "dry-run", false, "with RUN: show what would change, without writing it")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each log; with RUN: one document")
	return o
}

// maxListed is the largest number of logs for which mini grade prints a line for each
// log without --verbose.
const maxListed = 20

func gradeLogs(ctx context.Context, a *app.App, o *gradeOptions, paths []string) error {
	if len(o.Subsets) == 0 {
		return usage.Errorf("--subset is required: demo, verified, lite ..., or a file of rows; see mini datasets list")
	}
	search, err := savedlogs.FindLogs(paths)
	if err != nil {
		return usage.Wrap(err)
	}
	sources, err := o.OpenAll(ctx, a.Streams)
	if err != nil {
		return usage.Wrap(err)
	}
	rows, err := savedlogs.ReadRows(ctx, sources, search.IDs())
	if err != nil {
		return usage.Wrap(err)
	}
	folders, err := o.gradable(a, search.Folders, rows)
	if err != nil {
		return err
	}
	cmdutil.SetMemory(400, 224<<20)
	var totals savedlogs.Totals
	sets := savedlogs.GroupByPredictions(folders)
	printLine := o.printer(a, len(folders))
	for r := range (savedlogs.Grader{}).Grade(ctx, folders, rows.TestSpecs) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line := r.Line(rows)
		totals.Add(line, r.Bytes)
		if name, ok := sets[r.Path]; ok {
			totals.AddToSet(name, line)
		}
		if err := printLine(line); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return o.finish(a, search, rows, totals)
}

// gradable returns the folders whose instances have a row that can be graded. It returns
// an error if there are none or, without --skip-unknown, if there are others.
func (o *gradeOptions) gradable(
	a *app.App, candidates []savedlogs.Folder, rows savedlogs.Rows,
) ([]savedlogs.Folder, error) {
	problem := o.rowProblem(rows)
	if problem != "" && !o.skipUnknown {
		return nil, usage.Errorf("%s; pass --skip-unknown to skip them", problem)
	}
	folders := slices.DeleteFunc(slices.Clone(candidates), func(f savedlogs.Folder) bool {
		_, ok := rows.TestSpecs[f.InstanceID]
		return !ok
	})
	if len(folders) == 0 {
		return nil, usage.Errorf("no log can be graded: %s", problem)
	}
	if problem != "" {
		_, _ = fmt.Fprintf(a.Err, "mini: skipped %s: %s\n",
			text.Count(len(candidates)-len(folders), "log"), text.Printable(problem)) // best effort
	}
	return folders, nil
}

// rowProblem describes the logs without a row and the rows that cannot be graded. It
// returns "" if all logs can be graded.
func (o *gradeOptions) rowProblem(rows savedlogs.Rows) string {
	var parts []string
	if n := len(rows.Unknown); n > 0 {
		parts = append(parts, fmt.Sprintf("%s has no row for the %s %s",
			strings.Join(o.Subsets, ", "), text.Plural(n, "folder"), text.List(rows.Unknown)))
	}
	if n := len(rows.Ungradable); n > 0 {
		var texts []string
		for _, err := range rows.Ungradable {
			texts = append(texts, err.Error())
		}
		slices.SortFunc(texts, datasets.CompareNatural)
		parts = append(parts, texts[0])
		if n > 1 {
			parts[len(parts)-1] += fmt.Sprintf(" (and %d more like it)", n-1)
		}
	}
	return strings.Join(parts, "; ")
}

// printsEachLog reports whether mini grade prints a line for each log.
func (o *gradeOptions) printsEachLog(logs int) bool { return o.verbose || logs <= maxListed }

// printer returns a function that prints the result of one log. Without --json, it
// prints nothing if there are too many logs.
func (o *gradeOptions) printer(a *app.App, logs int) func(savedlogs.Line) error {
	switch {
	case o.json:
		enc := json.NewEncoder(a.Out)
		enc.SetEscapeHTML(false)
		return func(l savedlogs.Line) error { return enc.Encode(l) }
	case o.printsEachLog(logs):
		return func(l savedlogs.Line) error { return report.WriteVerdict(a.Out, l, ui.Width(a.Out)) }
	}
	return func(savedlogs.Line) error { return nil }
}

// finish prints the summary. It returns cmdutil.ErrIncomplete if a log was not graded
// or the search skipped a path.
func (o *gradeOptions) finish(
	a *app.App, search savedlogs.SearchResult, datasetRows savedlogs.Rows, totals savedlogs.Totals,
) error {
	if n := len(search.WithoutLog); n > 0 {
		_, _ = fmt.Fprintf(a.Err, "mini: %s of evaluations without a log: %s\n",
			text.Count(n, "folder"), text.Printable(text.List(search.WithoutLog))) // best effort
	}
	for _, skipped := range search.Skipped {
		_, _ = fmt.Fprintln(a.Err, "mini: skipped", text.Printable(skipped.Path+": "+skipped.Reason)) // best effort
	}
	if !o.json {
		var b strings.Builder
		if o.printsEachLog(totals.Logs) {
			b.WriteString("\n")
		}
		err := report.WriteTotals(&b, totals, ui.Width(a.Out))
		for _, edition := range datasetRows.Editions {
			b.WriteString(text.Printable(rows.FormatSource(edition)) + "\n")
		}
		if _, werr := io.WriteString(a.Out, b.String()); err != nil || werr != nil {
			return errors.Join(err, werr)
		}
	}
	if totals.Graded() < totals.Logs || len(search.Skipped) > 0 {
		return cmdutil.ErrIncomplete
	}
	return nil
}
