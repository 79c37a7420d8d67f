package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/compare"
)

// Exit codes of mini compare --max-drop; see mini compare --help.
const (
	exitDropped = 4 // the drop of a run is more than --max-drop
	exitUnclear = 5 // the results do not show whether the drop is more
)

// compareOptions holds the flags of mini compare.
type compareOptions struct {
	base, missing       string
	filter              string
	detect, maxDrop     float64
	maxDropIsSet        bool
	json, csv, markdown bool
	page                htmlOptions
}

// NewCompare returns the command mini compare.
func NewCompare(a *app.App) *cobra.Command {
	o := &compareOptions{}
	cmd := &cobra.Command{
		Use:   "compare [RUN RUN...]",
		Short: "Compare runs on the same instances",
		Long: `Compares the resolve rates of runs on the instances that they have in common:
what differs in their configurations, rates with 95% intervals, paired
differences with exact tests, the instances that differ, pass@k, and cost. The
first run is the base unless --base names another. Without arguments it compares
the two newest runs of one dataset in ` + cmdutil.DefaultRunsDir + `. mini compare only reads; run
mini eval first, because it needs verdicts.

An attempt without a verdict does not count, and neither does an instance that
only one run has. With --missing fail, missing verdicts count as not resolved.
If the conclusion depends on this choice, the first line says so.

With --html it writes the comparison and the pages of mini view into one file; see
mini report --help.

With --max-drop, mini compare exits with code 0 if the interval of the
difference is above the drop, with 4 if it is below, and with 5 if the results
do not tell.`,
		Example: `  mini compare runs/first runs/second
  mini compare runs/* --base runs/first --json | jq '.pairs[].sentence'
  mini compare runs/main runs/branch --max-drop 2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return usage.Errorf("mini compare takes at least two runs; see mini compare --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.maxDropIsSet = cmd.Flags().Changed("max-drop")
			if len(args) == 0 {
				var err error
				if args, err = newestPair(a); err != nil {
					return err
				}
			}
			return o.run(cmd.Context(), a, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "compare with this `RUN` (default: the first)")
	f.StringVar(&o.missing, "missing", "drop", "attempts without a verdict: drop, or fail to count them as not resolved")
	f.StringVar(&o.filter, "filter", "", "compare only instances whose id begins with this `REGEXP`")
	f.Float64Var(&o.detect, "detect", 0, "say what would detect a difference of this many `POINTS`")
	f.Float64Var(&o.maxDrop, "max-drop", 0, "exit with 4 if a run is more than these `POINTS` below the base")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	f.BoolVar(&o.csv, "csv", false, "print one line per instance, for spreadsheets")
	f.BoolVar(&o.markdown, "markdown", false, "print Markdown")
	o.page.addFlags(f)
	return cmd
}

func (o *compareOptions) run(ctx context.Context, a *app.App, dirs []string) error {
	c, err := o.prepare(dirs)
	if err != nil {
		return err
	}
	if err := o.page.check(); err != nil {
		return err
	}
	var runs []compare.Run
	for _, dir := range dirs {
		run, err := compare.Load(dir)
		if err != nil {
			return cmdutil.RunFolderError(dir, err)
		}
		runs = append(runs, run)
	}
	selected := datasets.Selection{Filter: o.filter}
	instances := 0
	for i, name := range compare.Names(dirs) {
		runs[i].Name = name
		if err := runs[i].Select(selected); err != nil {
			return usage.Wrap(err)
		}
		instances += len(runs[i].Instances)
	}
	if o.filter != "" && instances == 0 {
		return usage.Errorf("--filter %.80s: no run has such an instance", o.filter)
	}
	result, err := compare.New(runs, c)
	if err != nil {
		return err
	}
	switch {
	case o.page.file != "":
		err = o.page.write(ctx, a, dirs, c.Base, c.Missing)
	case o.json:
		err = cmdutil.WriteJSON(a.Out, result)
	case o.csv:
		err = result.WriteCSV(a.Out, runs)
	case o.markdown:
		err = result.Doc().WriteMarkdown(a.Out)
	default:
		err = a.Print(result.Doc())
	}
	if err != nil || result.Gate == nil {
		return err
	}
	switch result.Gate.Answer {
	case compare.Failed:
		return cmdutil.WithCode(errors.New("a run resolves fewer instances than --max-drop allows"), exitDropped)
	case compare.Unknown:
		return cmdutil.WithCode(errors.New("the results do not tell whether a run is within --max-drop"), exitUnclear)
	}
	return nil
}

// newestPair returns the two newest runs here that have the same dataset, the older one first.
func newestPair(a *app.App) ([]string, error) {
	dir := cmdutil.RunsDir()
	list, err := readRuns(a, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, usage.Wrap(err)
	}
	older := map[string]string{} // by dataset
	newer := map[string]string{}
	for _, r := range list {
		switch {
		case r.Dataset == "":
		case newer[r.Dataset] == "":
			newer[r.Dataset] = r.Folder
		case older[r.Dataset] == "":
			older[r.Dataset] = r.Folder
		}
	}
	for _, r := range list {
		if older[r.Dataset] != "" {
			pair := []string{older[r.Dataset], newer[r.Dataset]}
			_, _ = fmt.Fprintf(a.Err, "mini: the two newest runs of %s here are %s and %s\n", text.Printable(r.Dataset), text.ShellQuote(pair[0]), text.ShellQuote(pair[1])) // best effort
			return pair, nil
		}
	}
	message := "mini compare takes at least two runs, and no two in " + dir + " have the same dataset"
	if len(list) > 0 {
		message += "; the newest is " + text.ShellQuote(list[0].Folder)
	}
	return nil, usage.Errorf("%s; see mini compare --help", message)
}

// prepare validates the flags and the names of the runs.
func (o *compareOptions) prepare(dirs []string) (compare.Options, error) {
	c := compare.Options{Missing: compare.MissingRule(o.missing), Detect: o.detect}
	if c.Missing != compare.Drop && c.Missing != compare.Fail {
		return c, usage.Errorf("--missing %.40q: it is drop or fail", o.missing)
	}
	outputs := 0
	for _, given := range []bool{o.json, o.csv, o.markdown, o.page.file != ""} {
		if given {
			outputs++
		}
	}
	if outputs > 1 {
		return c, usage.Errorf("--json, --csv, --markdown and --html cannot be combined")
	}
	if o.page.file != "" && (o.filter != "" || o.detect > 0) {
		return c, usage.Errorf("--filter and --detect cannot be combined with --html")
	}
	if o.detect < 0 || o.detect > 100 || o.maxDrop < 0 || o.maxDrop > 100 {
		return c, usage.Errorf("--detect and --max-drop are points from 0 to 100")
	}
	if o.maxDropIsSet {
		c.MaxDrop = &o.maxDrop
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return c, cmdutil.RunFolderError(dir, err)
		}
		if path, err = filepath.Abs(path); err != nil {
			return c, fmt.Errorf("compare runs: %w", err)
		}
		if seen[path] {
			return c, usage.Errorf("%s is given twice; a run cannot be compared with itself", dir)
		}
		seen[path] = true
	}
	if o.base == "" {
		return c, nil
	}
	for i, dir := range dirs {
		if filepath.Clean(dir) == filepath.Clean(o.base) {
			c.Base = i
			return c, nil
		}
	}
	return c, usage.Errorf("--base %s is not one of the runs", o.base)
}
