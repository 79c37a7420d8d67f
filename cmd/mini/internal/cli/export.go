package cli

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
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/export/sieve"
)

// exportOptions are the flags of mini export.
type exportOptions struct {
	export.Options
	output, pick, shardSize string
	workers                 int
	sieve                   sieveFlags
	force, json             bool
	rule                    export.Rule
	progressAt              time.Time
}

func newExport(s Streams) *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{
		Use:   "export RUN... --format FORMAT -o FOLDER",
		Short: "Write attempts as training data, or for other tools",
		Long: `Writes the attempts of runs, and single trajectories of any format that mini
reads, as rows that trainers take or as files of other tools. docs/export.md
shows a row of each format and the settings to train with it.

  openai              messages and tools: TRL, verl
  sharegpt            conversations, with dataset_info.json: LLaMA-Factory
  axolotl             messages that say which are learned: Axolotl
  prompt-completion   a row a step, what was sent and the reply: TRL
  kto, dpo            replies with a label, pairs of replies, by verdicts: TRL
  atif, traj          a file an attempt: ATIF 1.7, mini-swe-agent 1.1
  preds               one preds.json

The folder is new, and there only when all of it is: rows in train.jsonl, and
export.json, which says what made them, what was left out and why.`,
		Example: `  mini export runs/first --format openai -o data/sft
  mini export runs/a runs/b --format sharegpt --select shortest -o data/sft
  mini export runs/first --format openai --parquet --shard-size 500MB -o out
  mini export django__django-11099.traj.json --format axolotl -o data/one`,
		Args: atLeastOne("the folders of runs, or files of trajectories"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Format, "format", "", "`NAME` of the format, as above")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` to make")
	f.BoolVar(&o.Parquet, "parquet", false, "write parquet files instead of lines of JSON")
	f.StringVar((*string)(&o.Reasoning), "reasoning", "", "thinking of the model: keep, drop or inline (default \"keep\")")
	f.StringVar((*string)(&o.Faults), "format-errors", "", "replies in a wrong format, and their answers: drop, keep or mask (default \"drop\")")
	f.StringVar((*string)(&o.Arguments), "tool-arguments", "", "how arguments of tool calls are written: object or text")
	f.StringVar((*string)(&o.Completion), "completion", "", "completion of kto and dpo rows: reply or rest (default \"reply\")")
	f.StringVar(&o.pick, "select", "", "which attempts: all, first (of preds), every, resolved, shortest, cheapest or random (default \"all\")")
	f.IntVar(&o.ShardRows, "shard-rows", 0, "begin a new file after this number of rows")
	f.StringVar(&o.shardSize, "shard-size", "", "begin a new file before it has this `SIZE`, as 500MB")
	f.BoolVar(&o.force, "force", false, "replace the export that is there")
	f.IntVarP(&o.workers, "workers", "w", 0, "number of attempts to read in parallel (default one a processor)")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	o.sieve.flags(f)
	for name, words := range map[string][]string{
		"format": export.Formats(), "reasoning": {"keep", "drop", "inline"}, "format-errors": {"drop", "keep", "mask"},
		"tool-arguments": {"object", "text"}, "completion": {"reply", "rest"}, "select": ruleNames(),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for flags that do not exist
	}
	return cmd
}

func ruleNames() []string {
	var names []string
	for _, r := range export.Rules() {
		names = append(names, string(r))
	}
	return names
}

// check reads the flags.
func (o *exportOptions) check() error {
	if o.Format == "" {
		return usagef("which format? --format %s", strings.Join(export.Formats(), ", "))
	}
	if o.output == "" {
		return usagef("where to? -o FOLDER")
	}
	if ext := filepath.Ext(o.output); slices.Contains([]string{".jsonl", ".json", ".parquet"}, ext) {
		return usagef("-o names a folder, and %s looks like a file: files get their names within it", o.output)
	}
	if o.shardSize != "" {
		n, err := units.FromHumanSize(o.shardSize)
		if err != nil || n < 1 {
			return usagef("--shard-size: %.60q is no size; write it as 500MB", o.shardSize)
		}
		o.ShardBytes = n
	}
	checked, err := o.Checked()
	if err != nil {
		return before(err)
	}
	o.Options = checked
	if o.rule = export.Rule(o.pick); o.pick == "" {
		o.rule = export.All
		if o.Format == export.Preds {
			o.rule = export.First
		}
	}
	if !slices.Contains(export.Rules(), o.rule) {
		return usagef("--select: %.60q is not one of %s", o.pick, strings.Join(ruleNames(), ", "))
	}
	if o.workers < 1 {
		o.workers = runtime.GOMAXPROCS(0)
	}
	return nil
}

// An export is all work, and holds few attempts at a time: memory that would be
// collected early is better used. Near the limit it is collected early after all.
const (
	exportGCPercent = 300
	exportMemory    = 144 << 20
)

func (o *exportOptions) run(ctx context.Context, s Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(exportGCPercent)
		debug.SetMemoryLimit(exportMemory)
	}
	sifted, err := o.newSieve()
	if err != nil {
		return err
	}
	src := &exportSource{options: o}
	for _, arg := range args {
		if err := src.add(arg); err != nil {
			return err
		}
	}
	cfg := export.Config{
		Options: o.Options, Dir: o.output, Replace: o.force, Workers: o.workers, Tools: src.tools,
		Sieve: func(it *export.Item) func() []*export.Item {
			l := sifted.Look(it)
			return func() []*export.Item { return sifted.Take(l) }
		},
		Sifted: func() error {
			sifted.End()
			return before(sifted.Refusal())
		},
		Split: sifted.SplitOf, Wrote: sifted.Wrote,
		Manifest: func(dir string, r export.Report) error { return o.manifest(dir, src, sifted, r) },
		Progress: func(r export.Report) { o.progress(s, r) },
	}
	for _, split := range o.sieve.cfg.Splits {
		cfg.Splits = append(cfg.Splits, split.Name)
	}
	r, err := export.Run(ctx, cfg, src.list())
	r.Unread = append(src.unread, r.Unread...)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, export.ErrNothing):
		return o.nothing(s, sifted, r)
	case errors.Is(err, export.ErrFolder), errors.Is(err, export.ErrOptions):
		return before(err)
	case err != nil:
		return err
	}
	return o.show(s, sifted, r)
}

// trains says whether the rows of a format are for training.
func trains(format string) bool {
	return !slices.Contains([]string{export.ATIF, export.Traj, export.Preds}, format)
}

// newSieve is what the flags ask for.
func (o *exportOptions) newSieve() (*sieve.Sieve, error) {
	s, err := o.sieve.sieve(trains(o.Format), o.Reasoning != export.Drop)
	switch {
	case err != nil:
		return nil, err
	case o.sieve.split != "" && !trains(o.Format):
		return nil, usagef("--split is for rows; %s has files of its own", o.Format)
	case o.sieve.set.Changed("seed") && o.sieve.split == "" && o.rule != export.Random:
		return nil, usagef("--seed is for --split and --select random, of which neither is given")
	}
	return s, nil
}

// exportedAs is export.json. It has no time in it: the same export gives the
// same bytes.
type exportedAs struct {
	Format      string         `json:"format"`
	MiniVersion string         `json:"mini_version"`
	Options     export.Options `json:"options"`
	Select      export.Rule    `json:"select"`
	Seed        uint64         `json:"seed"`
	Runs        []exportedRun  `json:"runs"`
	export.Report
}

func (o *exportOptions) manifest(dir string, src *exportSource, sifted *sieve.Sieve, r export.Report) error {
	r.Unread = append(src.unread, r.Unread...)
	data, err := json.MarshalIndent(exportedAs{
		Format: "mini-export-1", MiniVersion: Version, Options: o.Options, Select: o.rule, Seed: o.sieve.cfg.Seed, Runs: src.runs, Report: r,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSieveReport(dir, sifted.Report()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, export.ManifestFile), append(data, '\n'), 0o644) //nolint:gosec // results are for sharing
}

// progressEvery is how often a long export says how far it is.
const progressEvery = 10 * time.Second

func (o *exportOptions) progress(s Streams, r export.Report) {
	switch now := time.Now(); {
	case o.progressAt.IsZero():
		o.progressAt = now
	case now.Sub(o.progressAt) >= progressEvery:
		o.progressAt = now
		_, _ = fmt.Fprintf(s.Err, "mini: %d of %s exported so far\n", r.Exported, report.Count(r.Attempts, "attempt")) // only for people
	}
}

// nothing says why there is nothing.
func (o *exportOptions) nothing(s Streams, sifted *sieve.Sieve, r export.Report) error {
	for _, line := range r.Unread {
		_, _ = fmt.Fprintln(s.Err, "mini:", report.Printable(line)) // only for people
	}
	text := "nothing to export, and no folder was made"
	for _, reason := range reasons(r.Dropped) {
		text += fmt.Sprintf("\n  left out: %s", reason)
	}
	for _, d := range sifted.Report().Dropped {
		text += fmt.Sprintf("\n  left out: %d, %s", d.Attempts, d.Reason)
	}
	if len(r.Unread) > 0 {
		return &codedError{errors.New(text), exitIncomplete}
	}
	return usagef("%s", text)
}

// reasons are counts with what they count, the most frequent first.
func reasons(counts map[string]int) []string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d, %s", counts[name], name)
	}
	return names
}

func (o *exportOptions) show(s Streams, sifted *sieve.Sieve, r export.Report) error {
	for _, line := range r.Unread {
		_, _ = fmt.Fprintln(s.Err, "mini:", report.Printable(line)) // only for people
	}
	var err error
	if o.json {
		enc := json.NewEncoder(s.Out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(struct {
			export.Report
			Sieve *sieve.Report `json:"sieve"`
		}{r, sifted.Report()})
	} else if _, err = fmt.Fprint(s.Out, o.text(r)); err == nil {
		err = sifted.Report().WriteText(s.Out, plainWidth)
	}
	if err == nil && len(r.Unread) > 0 {
		return &codedError{errSaid, exitIncomplete}
	}
	return err
}

func (o *exportOptions) text(r export.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %s exported", report.Printable(o.output), r.Exported, report.Count(r.Attempts, "attempt"))
	if r.Rows > 0 {
		fmt.Fprintf(&b, " as %s", report.Count(r.Rows, "row"))
	}
	fmt.Fprintf(&b, ", %s in %s\n", report.Size(r.Bytes), report.Count(len(r.Files), "file"))
	for _, f := range r.Files {
		if f.Split != "" && len(r.Files) > 1 && len(r.Files) <= 20 {
			fmt.Fprintf(&b, "  %s: %s, %s\n", report.Printable(f.Name), report.Count(f.Rows, "row"), report.Size(f.Bytes))
		}
	}
	for _, reason := range reasons(r.Dropped) {
		fmt.Fprintf(&b, "left out: %s\n", report.Printable(reason))
	}
	for _, loss := range reasons(r.Losses) {
		fmt.Fprintf(&b, "note: %s\n", report.Printable(loss))
	}
	return b.String()
}
