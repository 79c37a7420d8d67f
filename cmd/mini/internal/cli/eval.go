package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
)

// evalOptions are the flags of mini eval.
type evalOptions struct {
	configFlags
	subsetFlags
	selection   datasets.Selection
	patches     string
	rows        []datasets.Edition // of the run that the patches are from, where they were taken from it
	output      string
	runID       string
	skipUnknown bool
	trustLogs   bool
	dryRun      bool
	progress    string
	json        bool
}

// defaultRunID names evaluations in the official layout of files. It is the
// same each time: what is evaluated again in a folder goes on there.
const defaultRunID = "mini"

func newEval(kill context.Context, s Streams) *cobra.Command {
	o := &evalOptions{}
	cmd := &cobra.Command{
		Use:   "eval --subset SET -p PREDS",
		Short: "Judge patches by running the tests of their instances",
		Long: `Judges patches as the official SWE-bench harness does, in fresh containers.
PREDS is a file of predictions, the folder of a run, gold or noop.`,
		Example: `  mini eval --subset verified -p preds.json -w 4
  mini eval -p runs/first                 what a run submitted, in its folder`,
		Annotations: map[string]string{groupsKey: "patches: predictions skip-unknown trust-logs; rows: subset split instance filter+slice; " +
			"sandbox: workers timeout eval-network; run: output run-id rerun-failed cache config dry-run; output: progress+json"},
		Args: evalArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEval(cmd.Context(), kill, s, o) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *evalOptions) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.patches, "predictions", "p", "", "a file, a run, gold or noop: `PREDS`")
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "pass over what cannot be graded")
	f.BoolVar(&o.trustLogs, "trust-logs", false, "grade logs that came with the folder")
	o.subsetFlags.flags(f)
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "only this `ID`; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "ids that begin with `RE`; then rows S")
	f.StringVar(&o.selection.Slice, "slice", "", "rows `S`, as in Python: A:B:STEP")
	f.IntP("workers", "w", 0, "`N` at once (default half the cores)")
	f.Float64("timeout", 0, "`S` seconds for the tests (1800)")
	f.String("eval-network", "", "`NAME`: bridge (default) or none")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` (that of the run, or in mini-runs/)")
	f.StringVar(&o.runID, "run-id", defaultRunID, "`ID` in logs/run_evaluation (mini)")
	f.Int("rerun-failed", 0, "`N` more runs of what failed")
	f.String("cache", "", "`FOLDER` of verdicts that runs share")
	o.set, o.keys = f, map[string]string{"workers": "eval.workers", "timeout": "eval.timeout"}
	f.StringArrayVarP(&o.config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would run, and run nothing")
	f.StringVar(&o.progress, "progress", "", "`KIND`: plain, json, none; results")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on stdout")
}

// evalArgs knows what somebody meant who left out -p.
func evalArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && !cmd.Flags().Changed("predictions") {
		return usagef("mini eval takes flags only; did you mean -p %s?", args[0])
	}
	return noArgs(cmd, args)
}

// runEval is `mini eval`, from flags to files.
func runEval(ctx, kill context.Context, s Streams, o *evalOptions) error {
	j, err := o.prepare(ctx, s)
	if err != nil {
		return before(err)
	}
	if o.dryRun {
		return before(j.explain(ctx, s))
	}
	return j.run(ctx, kill, s)
}

// settings are what an evaluation runs with. No model is needed.
func (o *evalOptions) settings(s Streams) (*configs.Resolved, error) {
	cfg, err := o.merge("swebench")
	if err != nil {
		return nil, err
	}
	for _, text := range idle(cfg) {
		_, _ = fmt.Fprintln(s.Err, "mini: note:", lines(text)) // only for people
	}
	return cfg, nil
}

// heeded are the settings of the agent's sandboxes that hold for those of
// evaluations too: they are about images, and about mini itself.
var heeded = map[string]bool{
	"environment.platform": true, "environment.pull_timeout": true, "environment.helper_dir": true,
	"environment.environment_class": true,
}

// idle says which settings that were given for this command mean nothing to it.
// The user's own file is for other commands too.
func idle(cfg *configs.Resolved) []string {
	entries, err := cfg.Entries("environment")
	if err != nil {
		return nil // merging found it right
	}
	var texts []string
	for _, e := range entries {
		o, ok := cfg.Origin(e.Key)
		if ok && !o.Shipped() && o.Layer != userConfig() && !heeded[e.Key] {
			texts = append(texts, fmt.Sprintf("%s (%s) is for the agent's sandboxes; evaluations have those of the official harness", e.Key, o))
		}
	}
	return texts
}
