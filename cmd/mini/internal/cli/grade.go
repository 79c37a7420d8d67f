package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/grade/saved"
	"github.com/minibench/mini/runner/report"
)

// gradeOptions are the flags of mini grade.
type gradeOptions struct {
	subsetFlags
	skipUnknown, verbose, dryRun, json bool
}

func newGrade(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grade --subset SET PATH... | RUN",
		Short: "Give verdicts on saved test logs, without a container",
		Long: `Reads the logs of past evaluations (test_output.txt, also with .gz) in folders
named after their instances, and below, and says which patches resolve their
instance, as the official SWE-bench harness does. An empty patch.diff beside a
log says that there was no patch. Several models, each in a folder of its own,
have a rate each. Links out of PATH, and what cannot be read, are passed over;
the exit code is 3 then. Nothing is run, and nothing written.

With RUN, a folder that mini eval has worked in, the verdicts of the run are
given again, after a parser or the dataset has changed, and those that change
are named. The rows are those of the dataset that the run names, as it is now.
Reports and summaries are written anew; a record keeps the verdicts that it had.
What cannot be judged now stays as it was.`,
		Example: `  mini grade --subset verified logs/run_evaluation/first
  mini grade --subset lite --subset verified --json LOGS | jq .resolved
  mini grade runs/first --dry-run`,
		Args: atLeastOne("folders with logs"),
	}
	o := gradeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && hasVerdicts(args[0]) {
			return o.regrade(cmd.Context(), s, args[0])
		}
		return o.run(cmd.Context(), s, args)
	}
	return cmd
}

func gradeFlags(cmd *cobra.Command) *gradeOptions {
	o := &gradeOptions{}
	f := cmd.Flags()
	f.SortFlags = false
	o.flags(f)
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "pass over logs of instances no set has, or that\ncannot be graded")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "a line for each log, also when there are many")
	f.BoolVar(&o.dryRun, "dry-run", false, "of a RUN: say what would change, and write nothing")
	f.BoolVar(&o.json, "json", false, "print JSON: a line for each log; of a RUN one document")
	return o
}

// fewLogs are shown one by one without being asked for.
const fewLogs = 20

// gradeGC and gradeMemory, a percentage and bytes, let garbage be most of a
// small memory: grading makes much of it, and is alone on the machine.
const (
	gradeGC     = 400
	gradeMemory = 224 << 20
)

func (o *gradeOptions) run(ctx context.Context, s Streams, paths []string) error {
	if len(o.subsets) == 0 {
		return usagef("--subset is needed: demo, verified, lite ..., or a file of rows; mini datasets list says more")
	}
	found, err := saved.Find(paths)
	if err != nil {
		return before(err)
	}
	sources, err := o.open(ctx, s)
	if err != nil {
		return before(err)
	}
	rows, err := saved.ReadRows(ctx, sources, found.IDs())
	if err != nil {
		return before(err)
	}
	folders, err := o.gradable(s, found.Folders, rows)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gradeGC)
		debug.SetMemoryLimit(gradeMemory)
	}
	var tally saved.Tally
	sets := saved.Sets(folders)
	each := o.each(s, len(folders))
	for r := range (saved.Grader{}).Grade(ctx, folders, rows.Rubrics) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l := r.Line(rows)
		tally.Add(l, r.Bytes)
		if name, ok := sets[r.Path]; ok {
			tally.AddTo(name, l)
		}
		if err := each(l); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return o.end(s, found, rows, tally)
}

// gradable leaves the folders whose instances have a row that can be graded.
func (o *gradeOptions) gradable(s Streams, all []saved.Folder, rows saved.Rows) ([]saved.Folder, error) {
	problem := o.problem(rows)
	if problem != "" && !o.skipUnknown {
		return nil, usagef("%s; --skip-unknown goes on without", problem)
	}
	folders := slices.DeleteFunc(slices.Clone(all), func(f saved.Folder) bool {
		_, ok := rows.Rubrics[f.InstanceID]
		return !ok
	})
	if len(folders) == 0 {
		return nil, usagef("no log is left to be judged: %s", problem)
	}
	if problem != "" {
		_, _ = fmt.Fprintf(s.Err, "mini: passed over %s: %s\n",
			report.Count(len(all)-len(folders), "log"), report.Printable(problem)) // only for people
	}
	return folders, nil
}

// problem says what is wrong with the rows, "" when nothing is.
func (o *gradeOptions) problem(rows saved.Rows) string {
	var parts []string
	if n := len(rows.Unknown); n > 0 {
		parts = append(parts, fmt.Sprintf("no row of %s is named after the %s %s",
			strings.Join(o.subsets, ", "), text.Plural(n, "folder"), someOf(rows.Unknown)))
	}
	if n := len(rows.Ungradable); n > 0 {
		var texts []string
		for _, err := range rows.Ungradable {
			texts = append(texts, err.Error())
		}
		slices.SortFunc(texts, datasets.Natural)
		parts = append(parts, texts[0])
		if n > 1 {
			parts[len(parts)-1] += fmt.Sprintf(" (and %d more like it)", n-1)
		}
	}
	return strings.Join(parts, "; ")
}

// someOf names the first of many.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// shows says whether so many logs are shown one by one.
func (o *gradeOptions) shows(logs int) bool { return o.verbose || logs <= fewLogs }

// each is what is printed of every result.
func (o *gradeOptions) each(s Streams, logs int) func(saved.Line) error {
	switch {
	case o.json:
		enc := json.NewEncoder(s.Out)
		enc.SetEscapeHTML(false)
		return func(l saved.Line) error { return enc.Encode(l) }
	case o.shows(logs):
		return func(l saved.Line) error { return report.Verdict(s.Out, l, widthOf(s.Out)) }
	}
	return func(saved.Line) error { return nil }
}

// end prints the summary, and picks the exit code.
func (o *gradeOptions) end(s Streams, found saved.Found, rows saved.Rows, t saved.Tally) error {
	if n := len(found.Logless); n > 0 {
		_, _ = fmt.Fprintf(s.Err, "mini: %s of evaluations without a log: %s\n",
			report.Count(n, "folder"), report.Printable(someOf(found.Logless))) // only for people
	}
	for _, skipped := range found.Skipped {
		_, _ = fmt.Fprintln(s.Err, "mini: passed over", report.Printable(skipped.Path+": "+skipped.Reason)) // only for people
	}
	if !o.json {
		if o.shows(t.Logs) {
			if _, err := fmt.Fprintln(s.Out); err != nil {
				return err
			}
		}
		if err := report.Verdicts(s.Out, t, widthOf(s.Out)); err != nil {
			return err
		}
		for _, e := range rows.Editions {
			if _, err := fmt.Fprintln(s.Out, report.Printable(editionText(e))); err != nil {
				return err
			}
		}
	}
	if t.Judged() < t.Logs || len(found.Skipped) > 0 {
		return fmt.Errorf("%w", errIncomplete)
	}
	return nil
}
