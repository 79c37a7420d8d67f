// Package eval implements mini eval, which evaluates patches in containers, and
// mini grade, which grades saved test logs.
package eval

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
)

// Options are the flags of mini eval.
type Options struct {
	settings.Flags
	datasets    rows.DatasetFlags
	selection   datasets.Selection
	patches     string // --predictions
	output      string
	runID       string
	skipUnknown bool
	trust       bool // --trust-verdicts
	dryRun      bool
	progress    string
	json        bool
}

// DefaultRunID is the default of --run-id. It is constant, so that a repeated
// evaluation in the same folder resumes the earlier one.
const DefaultRunID = "mini"

// New returns the command mini eval.
func New(a *app.App) *cobra.Command {
	o := &Options{}
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

func (o *Options) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.patches, "predictions", "p", "", "patches to evaluate: a `FILE`, a run's folder, gold or noop")
	f.BoolVar(&o.skipUnknown, "skip-unknown", false, "skip predictions that cannot be graded")
	f.BoolVar(&o.trust, "trust-verdicts", false, "take verdicts that this user's mini did not sign")
	o.datasets.AddFlags(f)
	f.StringArrayVarP(&o.selection.IDs, "instance", "i", nil, "evaluate only the instance with this `ID`, or the only one whose id contains it; repeatable")
	f.StringVar(&o.selection.Filter, "filter", "", "evaluate only instances whose id begins with this `REGEXP`")
	f.StringVar(&o.selection.Slice, "slice", "", "evaluate only a slice of the rows, as in Python: A:B or A:B:STEP")
	f.IntP("workers", "w", 0, "number of patches to evaluate in parallel (default half the cores)")
	f.Float64("timeout", 0, "timeout for the tests of an instance in `SECONDS` (default 1800)")
	f.String("eval-network", "", "container network: bridge or none (default \"bridge\")")
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` for the verdicts (default: the run's folder, or a new one in mini-runs/)")
	f.StringVar(&o.runID, "run-id", DefaultRunID, "name of the run in logs/run_evaluation")
	f.Int("rerun-failed", 0, "number of times to rerun failed tests")
	f.String("cache", "", "`FOLDER` for verdicts that several runs share")
	o.AddConfigFlag(f)
	o.SettingOfFlag = map[string]string{"workers": "eval.workers", "timeout": "eval.timeout"}
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would run, without running it")
	f.StringVar(&o.progress, "progress", "", "how to show progress: plain, json or none")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on stdout")
}

func run(ctx context.Context, a *app.App, o *Options) error {
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

// job is an evaluation that is ready to run.
type job struct {
	options *Options
	cfg     *configs.Resolved
	patches patches
	set     datasets.Set
	// selected are the ids of the selected rows, with or without a patch.
	selected []string
	tasks    []evaluate.Task
	notes    []string // skipped patches, and datasets that have changed since the run
	dir      string   // folder for the verdicts
	key      []byte   // signs verdicts as the user's own
	display  string   // kind of progress display
}

// ProgressKinds are the values of --progress; mini eval has no live view.
var ProgressKinds = []string{progress.Plain, progress.JSON, progress.None}

// prepare validates the flags and loads the patches and the rows. The only files that it
// writes are in the cache of datasets.
func prepare(ctx context.Context, a *app.App, o *Options) (_ *job, err error) {
	j := &job{options: o, dir: o.output}
	if j.cfg, err = a.ConfigWithoutModel(ctx, &o.Flags, "swebench"); err != nil {
		return nil, err
	}
	printUnusedSettings(a, j.cfg)
	if j.display, err = progress.Choose(o.progress, progress.DetectTerminal(a.Streams), ProgressKinds); err != nil && !o.dryRun {
		return nil, err
	}
	if j.patches, err = readPatches(o.patches); err != nil {
		return nil, err
	}
	var recorded []datasets.SourceInfo // the datasets of the run
	if len(o.datasets.Subsets) == 0 && j.patches.run != "" {
		if recorded, err = o.useRunDataset(j.patches.run); err != nil {
			return nil, err
		}
	}
	if len(o.datasets.Subsets) == 0 {
		return nil, usage.Errorf("--subset is required: the dataset of the patches; see mini datasets list")
	}
	if _, err := grade.NewLayout(".", o.runID); err != nil {
		return nil, usage.Errorf("--run-id: %w", err)
	}
	switch {
	case j.dir != "":
	case j.patches.run != "":
		j.dir = j.patches.run
	default:
		j.dir = rows.RunFolder("", append(slices.Clone(o.datasets.Subsets), j.patches.name))
	}
	if err := runner.CheckFolder(j.dir); err != nil {
		return nil, err
	}
	if err := j.load(ctx, a, recorded); err != nil {
		return nil, err
	}
	cmdutil.PrintWarnings(a.Err, append(j.patches.warnings, j.notes...))
	return j, nil
}

// load reads the rows of the patches and makes a task for each patch whose row can be graded.
func (j *job) load(ctx context.Context, a *app.App, recorded []datasets.SourceInfo) (err error) {
	names := strings.Join(j.options.datasets.Subsets, "+")
	j.set, err = j.options.datasets.Load(ctx, a.Streams, func(ids []string) (wanted []string, err error) {
		if j.selected, err = j.options.selection.Apply(ids); err != nil {
			return nil, err
		}
		if err := j.checkUnknown(ids); err != nil {
			return nil, err
		}
		wanted = slices.DeleteFunc(slices.Clone(j.selected), func(id string) bool { return !j.patches.includes(id) })
		switch {
		case len(wanted) > 0:
			return wanted, nil
		case len(j.selected) == 0:
			return nil, usage.Errorf("--instance, --filter and --slice select none of the %d instances of %s", len(ids), names)
		}
		return nil, usage.Errorf("%s: no prediction is for a selected instance of %s", j.patches.name, names)
	})
	if err != nil {
		return err
	}
	for i, e := range j.set.Sources {
		if i < len(recorded) && recorded[i].SHA256 != e.SHA256 {
			j.notes = append(j.notes, fmt.Sprintf("%s has changed since the run (%s, now %s); verdicts use the new rows",
				e.Name, rows.ShortHash(recorded[i].SHA256), rows.ShortHash(e.SHA256)))
		}
	}
	var all []evaluate.Task
	for _, in := range j.set.Instances {
		all = append(all, j.patches.tasks(in)...)
	}
	var ungradable []string
	for i, err := range j.config().CheckTasks(all) {
		switch {
		case err == nil:
			j.tasks = append(j.tasks, all[i])
		case !slices.Contains(ungradable, err.Error()): // the attempts at a row have the same error
			ungradable = append(ungradable, err.Error())
		}
	}
	if len(ungradable) == 0 {
		return nil
	}
	problem := ungradable[0]
	if n := len(ungradable); n > 1 {
		problem += fmt.Sprintf(" (and %d more like it)", n-1)
	}
	if len(j.tasks) == 0 && j.options.skipUnknown {
		return usage.Errorf("no patch can be evaluated: %s", problem)
	}
	return j.skip(problem, "")
}

// checkUnknown returns an error if predictions are for instances that the datasets, which have
// these ids, do not contain. With --skip-unknown, it adds a note instead.
func (j *job) checkUnknown(ids []string) error {
	isKnown := make(map[string]bool, len(ids))
	for _, id := range ids {
		isKnown[id] = true
	}
	var unknown []string
	for _, p := range j.patches.submissions {
		if p.Repetition == 0 && !isKnown[p.InstanceID] {
			unknown = append(unknown, p.InstanceID)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	hint := ""
	if near := datasets.ClosestIDs(unknown[0], ids, 2); len(near) > 0 {
		hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
	}
	return j.skip(fmt.Sprintf("%s: %s has no row %s", j.patches.name, strings.Join(j.options.datasets.Subsets, ", "), text.List(unknown)), hint)
}

// skip adds a note about patches with a problem or, without --skip-unknown, returns an error.
func (j *job) skip(problem, hint string) error {
	if !j.options.skipUnknown {
		return usage.Errorf("%s%s; pass --skip-unknown to skip them", problem, hint)
	}
	j.notes = append(j.notes, problem+"; skipped")
	return nil
}

// config returns the configuration of the evaluation. The caller sets the folder, the
// log and the sandboxes.
func (j *job) config() evaluate.Config {
	c := EvaluateConfig(j.cfg)
	c.RunID, c.Selected, c.Editions = j.options.runID, j.selected, j.set.Sources
	c.SigningKey, c.TrustVerdicts = j.key, j.options.trust
	return c
}

// EvaluateConfig returns the configuration of an evaluation with the default run id.
func EvaluateConfig(cfg *configs.Resolved) evaluate.Config {
	e, engine, profile := cfg.Eval, "docker", containerProfile
	if configs.UsesCluster(cfg.Environment.Class) {
		engine, profile = cfg.Environment.Class, clusterProfile
	}
	return evaluate.Config{
		RunID: DefaultRunID, Workers: WorkerCount(e.Workers), Timeout: configs.Duration(e.Timeout),
		Retries:     runner.Retries{MaxTries: cfg.Run.MaxTries, MaxDisruptions: cfg.Environment.Kubernetes.DisruptionRetries},
		RerunFailed: e.RerunFailed, Cache: e.Cache,
		Network: e.Network, Profile: profile, Engine: engine, MiniVersion: version.Version,
	}
}

// WorkerCount returns the number of evaluations to run in parallel: n, or half
// the number of cores, but at least 1, if n is not positive.
func WorkerCount(n int) int {
	if n > 0 {
		return n
	}
	return max(1, runtime.NumCPU()/2)
}

// PrepareCache creates the folder of shared verdicts.
func PrepareCache(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // verdicts may be world-readable
		return usage.Errorf("write to the verdict cache: %w; change --cache or eval.cache", err)
	}
	return nil
}

// sharedSettings are the settings of the agent's sandboxes that evaluations use too.
var sharedSettings = []string{
	"environment.platform", "environment.pull_timeout", "environment.helper_dir", "environment.environment_class",
}

// printUnusedSettings prints a note for each sandbox setting from flags or environment
// variables that has no effect on evaluations. It ignores settings in the user's
// configuration file, which other commands use too.
func printUnusedSettings(a *app.App, cfg *configs.Resolved) {
	entries, _ := cfg.Entries("environment") // the section exists
	for _, entry := range entries {
		origin, ok := cfg.Origin(entry.Key)
		if ok && !origin.IsBuiltin() && origin.Layer != userdirs.ConfigFile() && !slices.Contains(sharedSettings, entry.Key) {
			note := fmt.Sprintf("%s (%s) applies to the agent's sandboxes; evaluations use those of the official harness", entry.Key, origin)
			_, _ = fmt.Fprintln(a.Err, "mini: note:", cmdutil.Sanitize(note)) // best effort
		}
	}
}
