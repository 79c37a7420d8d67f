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
		Args: evalArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEval(cmd.Context(), kill, s, o) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *evalOptions) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.patches, "predictions", "p", "", "patches to evaluate: a `FILE`, a run's folder, gold or noop")
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "skip predictions that cannot be graded")
	f.BoolVar(&o.trustLogs, "trust-logs", false, "grade logs that came with the folder")
	o.subsetFlags.flags(f)
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "evaluate only the instance with this `ID`; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "evaluate only instances whose id begins with this `REGEXP`")
	f.StringVar(&o.selection.Slice, "slice", "", "evaluate only these rows, as in Python: A:B or A:B:STEP")
	f.IntP("workers", "w", 0, "number of patches to evaluate in parallel (default half the cores)")
	f.Float64("timeout", 0, "limit for the tests of an instance in `SECONDS` (default 1800)")
	f.String("eval-network", "", "container network: bridge or none (default \"bridge\")")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` of the verdicts (default: that of the run, or one below mini-runs/)")
	f.StringVar(&o.runID, "run-id", defaultRunID, "name of the run in logs/run_evaluation")
	f.Int("rerun-failed", 0, "number of times to run failed tests again")
	f.String("cache", "", "`FOLDER` of verdicts that runs share")
	o.set, o.keys = f, map[string]string{"workers": "eval.workers", "timeout": "eval.timeout"}
	f.StringArrayVarP(&o.config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would run, and run nothing")
	f.StringVar(&o.progress, "progress", "", "how to show progress: plain, json or none")
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
