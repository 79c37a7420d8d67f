// Package eval implements mini eval, which evaluates patches in containers, and
// mini grade, which grades saved test logs.
package eval

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

// options holds the flags of mini eval.
type options struct {
	settings.Flags
	rows.DatasetFlags
	selection   datasets.Selection
	patches     string                // --predictions
	runSources  []datasets.SourceInfo // datasets in the manifest of the run; nil with --subset
	output      string
	runID       string
	skipUnknown bool
	trust       bool // --trust-verdicts
	trustLogs   bool // the old --trust-logs
	dryRun      bool
	progress    string
	json        bool
}

// DefaultRunID is the default of --run-id. It is constant, so that a repeated
// evaluation in the same folder resumes the earlier one.
const DefaultRunID = "mini"

// New returns the command mini eval. When a.Kill is canceled, the command kills its
// containers.
func New(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "eval --subset SET -p PREDS",
		Short: "Evaluate patches by running the instance's tests",
		Long: `Evaluates each patch in a fresh container, as the official SWE-bench harness does.
PREDS is a file of predictions, the folder of a run, gold or noop.
For the folder of a run, mini eval writes the verdicts into that folder.`,
		Example: `  mini eval --subset verified -p preds.json -w 4
  mini eval -p runs/first`,
		Args: cmdutil.FlagsOnly("predictions", "-p"),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, o) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// addFlags adds the flags to f.
func (o *options) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.patches, "predictions", "p", "", "patches to evaluate: a `FILE`, a run's folder, gold or noop")
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "skip predictions that cannot be graded")
	f.BoolVar(&o.trust, "trust-verdicts", false, "take verdicts that this user's mini did not sign")
	f.BoolVar(&o.trustLogs, "trust-logs", false, "old name")
	_ = f.MarkHidden("trust-logs") // the flag exists
	o.DatasetFlags.AddFlags(f)
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "evaluate only the instance with this `ID`; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "evaluate only instances whose id begins with this `REGEXP`")
	f.StringVar(&o.selection.Slice, "slice", "", "evaluate only a slice of the rows, as in Python: A:B or A:B:STEP")
	f.IntP("workers", "w", 0, "number of patches to evaluate in parallel (default half the cores)")
	f.Float64("timeout", 0, "timeout for the tests of an instance in `SECONDS` (default 1800)")
	f.String("eval-network", "", "container network: bridge or none (default \"bridge\")")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` for the verdicts (default: the run's folder, or a new one in mini-runs/)")
	f.StringVar(&o.runID, "run-id", DefaultRunID, "name of the run in logs/run_evaluation")
	f.Int("rerun-failed", 0, "number of times to rerun failed tests")
	f.String("cache", "", "`FOLDER` for verdicts that several runs share")
	o.FlagSet, o.SettingOfFlag = f, map[string]string{"workers": "eval.workers", "timeout": "eval.timeout"}
	f.StringArrayVarP(&o.Config, "config", "c", nil, "YAML `FILE` or key.sub=value; repeatable")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would run, without running it")
	f.StringVar(&o.progress, "progress", "", "how to show progress: plain, json or none")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on stdout")
}

// run executes mini eval.
func run(ctx context.Context, a *app.App, o *options) error {
	j, err := prepare(ctx, a, o)
	if err != nil {
		return usage.Wrap(err)
	}
	if o.dryRun {
		p, err := j.plan(ctx)
		if err == nil {
			err = dryrun.Print(a.Streams, o.json, p, p.text(), p.Obstacle)
		}
		return usage.Wrap(err)
	}
	return j.run(ctx, a)
}

// settings resolves the configuration of the evaluation and prints the notes of
// unusedSettings.
func (o *options) settings(ctx context.Context, a *app.App) (*configs.Resolved, error) {
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, "swebench")
	if err != nil {
		return nil, err
	}
	for _, note := range unusedSettings(cfg) {
		_, _ = fmt.Fprintln(a.Err, "mini: note:", cmdutil.Sanitize(note)) // best effort
	}
	return cfg, nil
}

// sharedSettings lists the settings of the agent's sandboxes that evaluations
// use too.
var sharedSettings = map[string]bool{
	"environment.platform": true, "environment.pull_timeout": true, "environment.helper_dir": true,
	"environment.environment_class": true,
}

// unusedSettings returns a note for each sandbox setting from flags or environment
// variables that has no effect on evaluations. It ignores settings in the user's
// configuration file, which other commands use too.
func unusedSettings(cfg *configs.Resolved) []string {
	entries, err := cfg.Entries("environment")
	if err != nil {
		return nil // Merge has validated the configuration
	}
	var notes []string
	for _, entry := range entries {
		origin, ok := cfg.Origin(entry.Key)
		if ok && !origin.IsBuiltin() && origin.Layer != userdirs.ConfigFile() && !sharedSettings[entry.Key] {
			notes = append(notes, fmt.Sprintf(
				"%s (%s) applies to the agent's sandboxes; evaluations use those of the official harness", entry.Key, origin))
		}
	}
	return notes
}
