// Package convert implements mini export and mini import, which convert trajectories.
package convert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner/source"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

// exportOptions holds the flags of mini export.
type exportOptions struct {
	export.Options
	output, pick, shardSize string
	workers                 int
	filter                  filterFlags
	force, json             bool
	rule                    export.SelectRule
	progressAt              time.Time // time of the last progress line
}

// NewExport returns the command mini export.
func NewExport(a *app.App) *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{
		Use:   "export RUN... --format FORMAT -o FOLDER",
		Short: "Export attempts as training data or for other tools",
		Long: `Exports the attempts of runs, and single trajectories in any format that mini
reads, as training data or as files for other tools. docs/export.md shows a row
of each format and how to train with it.

  openai              messages and tools: TRL, verl
  sharegpt            conversations, with dataset_info.json: LLaMA-Factory
  axolotl             messages, each marked as trained or not: Axolotl
  prompt-completion   one row per step, with prompt and reply: TRL
  kto, dpo            replies labeled or paired by verdict: TRL
  atif, traj          one file per attempt: ATIF 1.7, mini-swe-agent 1.1
  preds               one preds.json
  table               instances, attempts and steps as CSV files, or with --parquet
                      as parquet files: pandas, R

The folder must not exist; it is created when the export is complete. Training
data is in train.jsonl. export.json has the options, the inputs, and the reasons
why attempts were dropped.`,
		Example: `  mini export runs/first --format openai -o data/sft
  mini export runs/a runs/b --format sharegpt --select shortest -o data/sft
  mini export runs/first --format openai --parquet --shard-size 500MB -o out
  mini export runs/a runs/b --format table -o tables
  mini export django__django-11099.traj.json --format axolotl -o data/one`,
		Args: cmdutil.AtLeastOne("the folders of runs, or files of trajectories"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), a, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Format, "format", "", "`NAME` of the format, see above")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` to create")
	f.BoolVar(&o.Parquet, "parquet", false, "write parquet files instead of JSON lines")
	f.StringVar((*string)(&o.Reasoning), "reasoning", "", "reasoning of the model: keep, drop or inline (default \"keep\")")
	f.StringVar((*string)(&o.FormatErrors), "format-errors", "", "replies with a format error: drop, keep or mask (default \"drop\")")
	f.StringVar((*string)(&o.ToolArguments), "tool-arguments", "", "encoding of tool call arguments: object or text")
	f.StringVar((*string)(&o.Completion), "completion", "", "completion of kto and dpo rows: reply or rest (default \"reply\")")
	f.StringVar(&o.pick, "select", "", "attempts to export: all, first, every, resolved, shortest, cheapest or random (default \"all\"; preds \"first\", table \"every\")")
	f.IntVar(&o.ShardRows, "shard-rows", 0, "start a new file after this number of rows")
	f.StringVar(&o.shardSize, "shard-size", "", "start a new file before this `SIZE`, such as 500MB")
	f.BoolVar(&o.force, "force", false, "replace an existing export")
	f.IntVarP(&o.workers, "workers", "w", 0, "number of attempts to read in parallel (default: number of cores)")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	o.filter.addFlags(f)
	for name, words := range map[string][]string{
		"format": export.Formats(), "reasoning": {"keep", "drop", "inline"}, "format-errors": {"drop", "keep", "mask"},
		"tool-arguments": {"object", "text"}, "completion": {"reply", "rest"}, "select": names(export.SelectRules()),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flags exist
	}
	return cmd
}

// names returns the values of a type as strings.
func names[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// check validates the flags.
func (o *exportOptions) check() error {
	if o.Format == "" {
		return usage.Errorf("--format is required: %s", strings.Join(export.Formats(), ", "))
	}
	if o.output == "" {
		return usage.Errorf("-o FOLDER is required")
	}
	if ext := filepath.Ext(o.output); slices.Contains([]string{".jsonl", ".json", ".parquet"}, ext) {
		return usage.Errorf("-o %s: looks like a file; pass a folder", o.output)
	}
	if o.shardSize != "" {
		n, err := units.FromHumanSize(o.shardSize)
		if err != nil || n < 1 {
			return usage.Errorf("--shard-size: %.60q is not a size; write it as 500MB", o.shardSize)
		}
		o.ShardBytes = n
	}
	if o.Format == export.Table {
		for _, name := range []string{"reasoning", "format-errors", "tool-arguments", "completion"} {
			if o.filter.flagSet.Changed(name) {
				return usage.Errorf("--%s: not available for table; leave the flag out", name)
			}
		}
	}
	checked, err := o.Validate()
	if err != nil {
		return usage.Wrap(err)
	}
	o.Options = checked
	if o.rule = export.SelectRule(o.pick); o.pick == "" {
		o.rule = export.SelectAll
		switch o.Format {
		case export.Preds:
			o.rule = export.SelectFirst
		case export.Table:
			o.rule = export.SelectEvery
		}
	}
	if !slices.Contains(export.SelectRules(), o.rule) {
		return usage.Errorf("--select: %.60q is not one of %s", o.pick, strings.Join(names(export.SelectRules()), ", "))
	}
	if o.workers < 1 {
		o.workers = runtime.GOMAXPROCS(0)
	}
	return nil
}

func (o *exportOptions) run(ctx context.Context, a *app.App, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	cmdutil.SetMemory(300, 144<<20)
	exportFilter, err := o.newFilter(a)
	if err != nil {
		return err
	}
	runs := source.New(source.Options{
		Rule: o.rule, Seed: o.filter.cfg.Seed, AllRecords: slices.Contains([]string{export.ATIF, export.Traj, export.Table}, o.Format),
		CollectTools: o.Parquet && isTrainingFormat(o.Format), IsOwn: eval.IsSignedByUser,
	})
	for _, arg := range args {
		if err := runs.Add(arg); err != nil {
			return cmdutil.RunFolderError(arg, err)
		}
	}
	cfg := export.Config{
		Options: o.Options, Dir: o.output, Overwrite: o.force, Workers: o.workers, Tools: runs.Tools(),
		Filter: func(item *export.Item) func() []*export.Item {
			inspected := exportFilter.Inspect(item)
			return func() []*export.Item { return exportFilter.Add(inspected) }
		},
		FilterDone: func() error {
			exportFilter.Finish()
			return usage.Wrap(exportFilter.Err())
		},
		Split: exportFilter.SplitOf, OnWritten: exportFilter.AddRows,
		WriteManifest: func(dir string, report export.Report) error { return o.writeManifest(dir, runs, exportFilter, report) },
		OnProgress:    func(report export.Report) { o.progress(a, report) },
	}
	for _, split := range o.filter.cfg.Splits {
		cfg.Splits = append(cfg.Splits, split.Name)
	}
	report, err := export.Run(ctx, cfg, runs.Attempts())
	report.ReadErrors = slices.Concat(runs.ReadErrors(), report.ReadErrors)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, export.ErrNothingToExport):
		return o.nothingExported(a, exportFilter, report)
	case errors.Is(err, export.ErrFolder), errors.Is(err, export.ErrOptions):
		return usage.Wrap(err)
	case err != nil:
		return err
	}
	return o.printResult(a, exportFilter, report)
}

// isTrainingFormat reports whether a format is for training data.
func isTrainingFormat(format string) bool {
	return !slices.Contains([]string{export.ATIF, export.Traj, export.Preds, export.Table}, format)
}

// newFilter returns the filter that the flags describe. It returns an error for flags
// that the format does not support.
func (o *exportOptions) newFilter(a *app.App) (*filter.Filter, error) {
	f, err := o.filter.newFilter(a, isTrainingFormat(o.Format), o.Reasoning != export.ReasoningDrop)
	switch {
	case err != nil:
		return nil, err
	case o.filter.split != "" && !isTrainingFormat(o.Format):
		return nil, usage.Errorf("--split: the format %s has no training data to split; leave the flag out", o.Format)
	case o.filter.flagSet.Changed("seed") && o.filter.split == "" && o.rule != export.SelectRandom:
		return nil, usage.Errorf("--seed requires --split or --select random")
	}
	return f, nil
}

// manifest is the content of export.json. It contains no time, so that repeated
// exports of the same data are byte-identical.
type manifest struct {
	Format      string            `json:"format"`
	MiniVersion string            `json:"mini_version"`
	Options     export.Options    `json:"options"`
	Select      export.SelectRule `json:"select"`
	Seed        uint64            `json:"seed"`
	Runs        []source.Input    `json:"runs"`
	export.Report
}

// writeManifest writes export.json and the report of the filter into dir.
func (o *exportOptions) writeManifest(dir string, src *source.Source, flt *filter.Filter, r export.Report) error {
	r.ReadErrors = slices.Concat(src.ReadErrors(), r.ReadErrors)
	data, err := json.MarshalIndent(manifest{
		Format: "mini-export-1", MiniVersion: version.Version,
		Options: o.Options, Select: o.rule, Seed: o.filter.cfg.Seed, Runs: src.Inputs(), Report: r,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFilterReport(dir, flt.Report()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, export.ManifestFile), append(data, '\n'), 0o644) //nolint:gosec // results may be world-readable
}

// progressInterval is the time between two progress lines.
const progressInterval = 10 * time.Second

// progress prints a progress line if progressInterval has passed since the last one or,
// for the first one, since the first call.
func (o *exportOptions) progress(a *app.App, r export.Report) {
	switch now := time.Now(); {
	case o.progressAt.IsZero():
		o.progressAt = now
	case now.Sub(o.progressAt) >= progressInterval:
		o.progressAt = now
		_, _ = fmt.Fprintf(a.Err, "mini: %d of %s exported so far\n", r.Exported, text.Count(r.Attempts, "attempt")) // best effort
	}
}

// nothingExported prints read errors and returns an error that lists the reasons why
// attempts were dropped.
func (o *exportOptions) nothingExported(a *app.App, flt *filter.Filter, r export.Report) error {
	for _, line := range r.ReadErrors {
		_, _ = fmt.Fprintln(a.Err, "mini:", text.Printable(line)) // best effort
	}
	msg := "nothing to export; the folder was not created"
	for _, reason := range reasons(r.Dropped) {
		msg += fmt.Sprintf("\n  dropped: %s", reason)
	}
	for _, d := range flt.Report().Dropped {
		msg += fmt.Sprintf("\n  dropped: %d, %s", d.Attempts, d.Reason)
	}
	if len(r.ReadErrors) > 0 {
		return cmdutil.WithCode(errors.New(msg), cmdutil.ExitIncomplete)
	}
	return usage.Errorf("%s", msg)
}

// reasons formats the count of each reason, the most frequent reason first.
func reasons(counts map[string]int) []string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d, %s", counts[name], name)
	}
	return names
}

// printResult prints read errors and the report of the export.
func (o *exportOptions) printResult(a *app.App, flt *filter.Filter, r export.Report) error {
	for _, line := range r.ReadErrors {
		_, _ = fmt.Fprintln(a.Err, "mini:", text.Printable(line)) // best effort
	}
	var err error
	if o.json {
		enc := json.NewEncoder(a.Out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(struct {
			export.Report
			Filter *filter.Report `json:"sieve"` //nolint:misspell // key of a format on disk
		}{r, flt.Report()})
	} else if _, err = fmt.Fprint(a.Out, o.text(r)); err == nil {
		err = flt.Report().WriteText(a.Out, ui.DefaultWidth)
	}
	if err == nil && len(r.ReadErrors) > 0 {
		return cmdutil.WithCode(cmdutil.ErrReported, cmdutil.ExitIncomplete)
	}
	return err
}

// text formats a report for people.
func (o *exportOptions) text(r export.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %s exported", text.Printable(o.output), r.Exported, text.Count(r.Attempts, "attempt"))
	if r.Rows > 0 {
		fmt.Fprintf(&b, " as %s", text.Count(r.Rows, "row"))
	}
	fmt.Fprintf(&b, ", %s in %s\n", unit.Size(r.Bytes), text.Count(len(r.Files), "file"))
	for _, f := range r.Files {
		if (f.Rows > 0 || f.Split != "") && len(r.Files) > 1 && len(r.Files) <= 20 {
			fmt.Fprintf(&b, "  %s: %s, %s\n", text.Printable(f.Name), text.Count(f.Rows, "row"), unit.Size(f.Bytes))
		}
	}
	for _, reason := range reasons(r.Dropped) {
		fmt.Fprintf(&b, "dropped: %s\n", text.Printable(reason))
	}
	for _, loss := range reasons(r.Losses) {
		fmt.Fprintf(&b, "note: %s\n", text.Printable(loss))
	}
	return b.String()
}
