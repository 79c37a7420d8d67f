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
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner/source"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/filter"
)

// ExportOptions are the flags of mini export.
type ExportOptions struct {
	export                  export.Options
	output, pick, shardSize string
	workers                 int
	filter                  filterFlags
	force, json             bool
	rule                    export.SelectRule
}

// NewExport returns the command mini export.
func NewExport(a *app.App) *cobra.Command {
	o := &ExportOptions{}
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
  tokens              token ids and log probabilities of each reply, with the reward:
                      reinforcement learning, from runs with --tokens
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
		RunE: func(cmd *cobra.Command, args []string) error { return runExport(cmd.Context(), a, o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.export.Format, "format", "", "`NAME` of the format, see above")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` to create")
	f.BoolVar(&o.export.Parquet, "parquet", false, "write parquet files instead of JSON lines")
	f.StringVar((*string)(&o.export.Reasoning), "reasoning", "", "reasoning of the model: keep, drop or inline (default \"keep\")")
	f.StringVar((*string)(&o.export.FormatErrors), "format-errors", "", "replies with a format error: drop, keep or mask (default \"drop\"; tokens \"keep\")")
	f.StringVar((*string)(&o.export.ToolArguments), "tool-arguments", "", "encoding of tool call arguments: object or text")
	f.StringVar((*string)(&o.export.Completion), "completion", "", "completion of kto and dpo rows: reply or rest (default \"reply\")")
	f.BoolVar(&o.export.Segments, "segments", false, "one row of tokens for the replies whose prompts continue the tokens before")
	f.StringVar(&o.pick, "select", "", "attempts to export: all, first, every, resolved, shortest, cheapest or random (default \"all\"; preds \"first\", table \"every\")")
	f.IntVar(&o.export.ShardRows, "shard-rows", 0, "start a new file after this number of rows")
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
func (o *ExportOptions) check() error {
	if o.export.Format == "" {
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
		o.export.ShardBytes = n
	}
	if o.export.Format == export.Table {
		for _, name := range []string{"reasoning", "format-errors", "tool-arguments", "completion"} {
			if o.filter.flagSet.Changed(name) {
				return usage.Errorf("--%s: not available for table; leave the flag out", name)
			}
		}
	}
	checked, err := o.export.Validate()
	if err != nil {
		return usage.Wrap(err)
	}
	o.export = checked
	if o.rule = export.SelectRule(o.pick); o.pick == "" {
		o.rule = export.SelectAll
		switch o.export.Format {
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

func runExport(ctx context.Context, a *app.App, o *ExportOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	cmdutil.SetMemory(300, 144<<20)
	isTraining := isTrainingFormat(o.export.Format)
	if o.export.Format == export.Tokens {
		if err := o.filter.forTokens(); err != nil {
			return err
		}
	}
	exportFilter, err := o.filter.newFilter(a, isTraining, o.export.Reasoning != export.ReasoningDrop)
	switch {
	case err != nil:
		return err
	case o.filter.split != "" && !isTraining:
		return usage.Errorf("--split: the format %s has no training data to split; leave the flag out", o.export.Format)
	case o.filter.flagSet.Changed("seed") && o.filter.split == "" && o.rule != export.SelectRandom:
		return usage.Errorf("--seed requires --split or --select random")
	}
	omit := trajectories.ForTraining
	if slices.Contains([]string{export.Tokens, export.ATIF, export.Traj, export.Table}, o.export.Format) {
		omit = 0
	}
	runs := source.New(source.Options{
		Rule: o.rule, Seed: o.filter.cfg.Seed, Omit: omit,
		CollectTools: o.export.Parquet && isTraining, IsOwn: eval.IsSignedByUser,
	})
	for _, arg := range args {
		if err := runs.Add(arg); err != nil {
			return cmdutil.RunFolderError(arg, err)
		}
	}
	var progressAt time.Time // of the last progress line, or of the start
	cfg := export.Config{
		Options: o.export, Dir: o.output, Overwrite: o.force, Workers: o.workers, Tools: runs.Tools(),
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
		OnProgress: func(r export.Report) {
			switch now := time.Now(); {
			case progressAt.IsZero():
				progressAt = now
			case now.Sub(progressAt) >= progressInterval:
				progressAt = now
				_, _ = fmt.Fprintf(a.Err, "mini: %d of %s exported so far\n", r.Exported, text.Count(r.Attempts, "attempt")) // best effort
			}
		},
	}
	for _, split := range o.filter.cfg.Splits {
		cfg.Splits = append(cfg.Splits, split.Name)
	}
	report, err := export.Run(ctx, cfg, runs.Attempts())
	report.ReadErrors = slices.Concat(runs.ReadErrors(), report.ReadErrors)
	for _, line := range report.ReadErrors {
		if ctx.Err() == nil && (err == nil || errors.Is(err, export.ErrNothingToExport)) {
			_, _ = fmt.Fprintln(a.Err, "mini:", text.Printable(line)) // best effort
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, export.ErrNothingToExport):
		return nothingExported(exportFilter, report)
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
func (o *ExportOptions) writeManifest(dir string, src *source.Source, flt *filter.Filter, r export.Report) error {
	r.ReadErrors = slices.Concat(src.ReadErrors(), r.ReadErrors)
	data, err := json.MarshalIndent(manifest{
		Format: "mini-export-1", MiniVersion: version.Version,
		Options: o.export, Select: o.rule, Seed: o.filter.cfg.Seed, Runs: src.Inputs(), Report: r,
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

// nothingExported returns an error that lists the reasons why attempts were dropped.
func nothingExported(flt *filter.Filter, r export.Report) error {
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

// printResult prints the report of the export.
func (o *ExportOptions) printResult(a *app.App, flt *filter.Filter, r export.Report) error {
	var err error
	if o.json {
		enc := json.NewEncoder(a.Out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(struct {
			export.Report
			Filter *filter.Report `json:"sieve"` //nolint:misspell // key of a format on disk
		}{r, flt.Report()})
	} else {
		d := o.doc(r)
		d.Add(flt.Report().Doc())
		err = a.Print(d)
	}
	if err == nil && len(r.ReadErrors) > 0 {
		return cmdutil.WithCode(cmdutil.ErrReported, cmdutil.ExitIncomplete)
	}
	return err
}

// doc returns a report for people.
func (o *ExportOptions) doc(r export.Report) *doc.Doc {
	d, rows := &doc.Doc{}, ""
	if r.Rows > 0 {
		rows = " as " + text.Count(r.Rows, "row")
	}
	d.Line(0, "%s: %d of %s exported%s, %s in %s", o.output, r.Exported, text.Count(r.Attempts, "attempt"), rows,
		unit.Size(r.Bytes), text.Count(len(r.Files), "file"))
	for _, f := range r.Files {
		if (f.Rows > 0 || f.Split != "") && len(r.Files) > 1 && len(r.Files) <= 20 {
			d.Line(2, "%s: %s, %s", f.Name, text.Count(f.Rows, "row"), unit.Size(f.Bytes))
		}
	}
	for _, reason := range reasons(r.Dropped) {
		d.Paragraph("dropped: "+reason, 0, 4)
	}
	for _, loss := range reasons(r.Losses) {
		d.Paragraph("note: "+loss, 0, 4)
	}
	return d
}
