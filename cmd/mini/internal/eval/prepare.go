package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/trajectories"
)

// job is an evaluation that is ready to run.
type job struct {
	options *options
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

// prepare validates the flags and loads the patches and the rows. The only files that it
// writes are in the cache of datasets.
func prepare(ctx context.Context, a *app.App, o *options) (*job, error) {
	if o.trustLogs {
		return nil, usage.Errorf("--trust-logs does not exist any more; use --trust-verdicts, which takes verdicts as they are, or mini grade RUN, which grades logs again")
	}
	cfg, err := o.settings(ctx, a)
	if err != nil {
		return nil, err
	}
	display, err := progress.Choose(o.progress, progress.DetectTerminal(a.Streams), ProgressKinds)
	if err != nil && !o.dryRun {
		return nil, err
	}
	patches, err := readPatches(o.patches)
	if err != nil {
		return nil, err
	}
	if len(o.Subsets) == 0 && patches.run != "" {
		if err := o.useRunDataset(patches.run); err != nil {
			return nil, err
		}
	}
	if len(o.Subsets) == 0 {
		return nil, usage.Errorf("--subset is required: the dataset of the patches; see mini datasets list")
	}
	if _, err := grade.NewLayout(".", o.runID); err != nil {
		return nil, usage.Errorf("--run-id: %w", err)
	}
	j := &job{options: o, cfg: cfg, patches: patches, display: display, dir: o.folder(patches)}
	if err := runner.CheckFolder(j.dir); err != nil {
		return nil, err
	}
	if err := j.load(ctx, a); err != nil {
		return nil, err
	}
	for _, line := range slices.Concat(patches.warnings, j.notes) {
		_, _ = fmt.Fprintln(a.Err, "mini: warning:", text.Printable(line)) // best effort
	}
	return j, nil
}

// ProgressKinds are the values of --progress; mini eval has no live view.
var ProgressKinds = []string{progress.Plain, progress.JSON, progress.None}

// folder returns the folder for the verdicts: that of -o, of the run that made the
// patches, or a new one.
func (o *options) folder(p patches) string {
	if o.output == "" && p.run != "" {
		return p.run
	}
	return rows.RunFolder(o.output, append(slices.Clone(o.Subsets), p.name))
}

// load reads the rows of the patches and creates a task for each patch.
func (j *job) load(ctx context.Context, a *app.App) error {
	sources, err := j.options.OpenAll(ctx, a.Streams)
	if err != nil {
		return err
	}
	byID := trajectories.Predictions{List: j.patches.predictions}.ByID()
	j.set, err = datasets.Load(ctx, sources, func(ids []string) ([]string, error) {
		var err error
		if j.selected, err = j.options.selection.Apply(ids); err != nil {
			return nil, err
		}
		if err := j.checkUnknown(ids); err != nil {
			return nil, err
		}
		wanted := slices.DeleteFunc(slices.Clone(j.selected), func(id string) bool { return !j.patches.includes(id, byID) })
		name := strings.Join(j.options.Subsets, "+")
		if len(wanted) == 0 && len(j.selected) == 0 {
			return nil, usage.Errorf("--instance, --filter and --slice select none of the %d instances of %s", len(ids), name)
		}
		if len(wanted) == 0 {
			return nil, usage.Errorf("%s: no prediction is for a selected instance of %s", j.patches.name, name)
		}
		return wanted, nil
	})
	if err != nil {
		return err
	}
	for i, e := range j.set.Sources {
		if i < len(j.options.runSources) && j.options.runSources[i].SHA256 != e.SHA256 {
			j.notes = append(j.notes, fmt.Sprintf("%s has changed since the run (%s, now %s); verdicts use the new rows",
				e.Name, rows.ShortHash(j.options.runSources[i].SHA256), rows.ShortHash(e.SHA256)))
		}
	}
	return j.makeTasks(byID)
}

// checkUnknown returns an error if predictions are for instances that the datasets do
// not contain. With --skip-unknown, it adds a note instead. ids are those in the
// datasets.
func (j *job) checkUnknown(ids []string) error {
	isKnown := make(map[string]bool, len(ids))
	for _, id := range ids {
		isKnown[id] = true
	}
	var unknown []string
	for _, p := range j.patches.predictions {
		if !isKnown[p.InstanceID] {
			unknown = append(unknown, p.InstanceID)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	problem := fmt.Sprintf("%s: %s has no row %s", j.patches.name, strings.Join(j.options.Subsets, ", "), text.List(unknown))
	if j.options.skipUnknown {
		j.notes = append(j.notes, problem+"; skipped")
		return nil
	}
	if near := datasets.ClosestIDs(unknown[0], ids, 2); len(near) > 0 {
		problem += fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
	}
	return usage.Errorf("%s; pass --skip-unknown to skip them", problem)
}

// makeTasks creates a task for each patch whose row can be graded. For other patches,
// it returns an error or, with --skip-unknown, adds a note. If that leaves no task, it
// returns an error.
func (j *job) makeTasks(byID map[string]trajectories.Prediction) error {
	var all []evaluate.Task
	for _, in := range j.set.Instances {
		all = append(all, j.patches.tasks(in, byID)...)
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
	if !j.options.skipUnknown {
		return usage.Errorf("%s; pass --skip-unknown to skip them", problem)
	}
	if len(j.tasks) == 0 {
		return usage.Errorf("no patch can be evaluated: %s", problem)
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

// PrepareCache creates the folder of shared verdicts and checks that it is
// writable.
func PrepareCache(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // verdicts may be world-readable
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".mini-"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return usage.Errorf("write to the verdict cache: %w; change --cache or eval.cache", err)
	}
	return nil
}
