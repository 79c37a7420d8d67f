// Package bench implements mini bench, which runs the agent on a benchmark dataset.
package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	datasetopen "github.com/minibench/mini/datasets/open"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/setup"
)

// Options are the flags of mini bench.
type Options struct {
	settings.Flags
	Datasets     rows.DatasetFlags
	Selection    datasets.Selection
	Output       string // folder of the run
	RedoExisting bool   // --redo-existing
	force        bool
	dryRun       bool
	progress     string
	JSON         bool
	events       string
	vary         []string // values of --vary
	// emptyFolder lets attempts begin in an empty folder if the sandbox lacks the repository.
	emptyFolder bool
}

// New returns the command mini bench.
func New(a *app.App) *cobra.Command {
	o := &Options{}
	o.RunsSweeps = true
	cmd := &cobra.Command{
		Use:   "bench --subset SET",
		Short: "Run the agent on a benchmark dataset",
		Long: `Runs the agent on the rows of a dataset, each in its own sandbox. With the -o of an
earlier run it resumes that run.

With --vary, it runs a sweep: one run for each combination of the values, each in
a folder below -o. The runs share the workers and the budget. The key vary in a
file of -c does the same: a mapping from keys to lists of values.`,
		Example: `  mini bench --subset demo
  mini bench --subset verified --slice 0:20 -w 8 -m gpt-5-mini -o runs/first
  mini bench --subset demo --vary agent.step_limit=2,50 -k 3 -o runs/exp`,
		Aliases: []string{"swebench"},
		Args:    cmdutil.FlagsOnly("subset", "--subset"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, o) },
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.vary, "vary", nil, "run each of several values of a setting: `KEY=A,B`; repeatable, for all combinations")
	return cmd
}

// AddFlags adds all flags of mini bench: those of the datasets, the settings, the selection
// and the output. mini doctor has the same flags.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	o.Datasets.AddFlags(f)
	o.Flags.AddFlags(f)
	f.StringVarP(&o.Output, "output", "o", "", "`FOLDER` of the run (default: a new one below mini-runs/)")
	f.IntP("workers", "w", 1, "number of instances to run in parallel")
	f.Bool("tokens", false, "record token ids and log probabilities, from a server such as vLLM")
	f.IntP("attempts", "k", 1, "number of attempts for each instance")
	f.String("agent", "", "`NAME|FILE` of the agent: mini, oracle, nop, another one, or its definition (default \"mini\")")
	f.String("replies", "", "`FILE` of replies for a scripted model: a YAML list of texts (docs/models.md); \"wrong\" stands for the demo's wrong ones")
	f.BoolVar(&o.emptyFolder, "empty-folder", false, "begin in an empty folder if the sandbox lacks the row's repository")
	f.String("network", "", "container network: none, bridge or a network's name (default \"none\")")
	f.StringSlice("task-env", nil, "let Harbor tasks use this environment `VARIABLE` of yours; repeatable")
	f.String("keep", "", "sandboxes to keep at the end: none, failed or all")
	f.String("image-budget", "", "disk space for pulled images, as 80GB")
	f.Float64("total-cost-limit", 0, "cost limit of the whole run in `USD` (0: none)")
	f.Int("total-calls", 0, "limit of model calls in the whole run (0: none)")
	f.Int("max-consecutive-provider-failures", 5, "end the run after this many provider failures in a row (0: never)")
	o.AddSelectionFlags(f)
	f.Bool("resume-attempts", false, "resume attempts that were stopped")
	f.BoolVar(&o.force, "force", false, "with --resume-attempts: also past commands that diverge")
	f.Bool("eval", false, "evaluate the patches during the run")
	f.Int("eval-workers", 0, "number of patches to evaluate in parallel (default half the cores)")
	f.BoolVar(&o.RedoExisting, "redo-existing", false, "run instances that have results again; earlier results stay")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would run, and run nothing")
	f.StringVar(&o.progress, "progress", "", "how to show progress: live, plain, json or none")
	f.BoolVar(&o.JSON, "json", false, "print the summary as JSON on stdout")
	cmdutil.AddEventsFlag(f, &o.events)
}

// AddSelectionFlags adds the flags that select rows. mini images has the same flags.
func (o *Options) AddSelectionFlags(f *pflag.FlagSet) {
	o.Selection.Numbered = true
	f.StringArrayVarP(&o.Selection.IDs, "instance", "i", nil, "run only the instance with this `ID`, or a part that only its id has, or number in the order of ids; repeatable")
	f.StringVar(&o.Selection.Filter, "filter", "", "run only instances whose id begins with this `REGEXP`")
	f.StringVar(&o.Selection.Slice, "slice", "", "run only these rows, as in Python: A:B or A:B:STEP")
	f.BoolVar(&o.Selection.Shuffle, "shuffle", false, "shuffle the rows before --slice")
	f.Uint64Var(&o.Selection.Seed, "seed", 42, "seed of --shuffle")
}

func run(ctx context.Context, a *app.App, o *Options) error {
	jobs, err := o.prepareJobs(ctx, a)
	if err != nil {
		return usage.Wrap(err)
	}
	if o.dryRun {
		return usage.Wrap(printPlans(ctx, a, jobs))
	}
	return runJobs(ctx, a, jobs)
}

// isDemo reports whether the demo is the only dataset.
func (o *Options) isDemo() bool { return slices.Equal(o.Datasets.Subsets, []string{datasetopen.Demo}) }

// hasTasks reports whether a dataset has tasks in Harbor's form.
func (o *Options) hasTasks() bool {
	return slices.ContainsFunc(o.Datasets.Subsets, datasetopen.IsTasks)
}

// BuiltinConfigs returns the names of the built-in configurations that the settings are based on,
// lowest layer first.
func (o *Options) BuiltinConfigs() []string {
	names := []string{"swebench"}
	switch {
	case o.isDemo():
		names = append(names, "demo")
	case o.hasTasks():
		names = append(names, "harbor")
	}
	if o.isDemo() || o.FlagSet.Changed("replies") {
		names = append(names, settings.Scripted)
	}
	return names
}

// prepareJobs returns the job that the flags describe, or the jobs of all combinations of a sweep.
func (o *Options) prepareJobs(ctx context.Context, a *app.App) ([]*Job, error) {
	vary, err := o.varied(a)
	if err != nil {
		return nil, err
	}
	if len(vary) == 0 {
		j := &Job{Options: o, Dir: rows.RunFolder(o.Output, o.Datasets.Subsets)}
		if err := j.resolve(ctx, a); err != nil {
			return nil, err
		}
		return []*Job{j}, j.prepare(ctx, a, a.Err, nil)
	}
	combinations, err := combine(vary)
	if err != nil {
		return nil, err
	}
	dir := rows.RunFolder(o.Output, o.Datasets.Subsets)
	if cmdutil.FileExists(filepath.Join(dir, datasets.RunFile)) {
		return nil, usage.Errorf("%s is the folder of a single run; give the sweep another folder with -o", dir)
	}
	jobs := make([]*Job, len(combinations))
	for i, c := range combinations {
		one := *o
		one.Combination = c.layers
		jobs[i] = &Job{Options: &one, combination: &c}
		if err := jobs[i].resolve(ctx, a); err != nil {
			if overlay, baseErr := o.Overlay(o.BuiltinConfigs()...); baseErr == nil {
				if _, baseErr = overlay.Check(); baseErr != nil { // in all combinations
					return nil, baseErr
				}
			}
			return nil, jobs[i].located(err)
		}
	}
	notes := notesWriter(a.Err, len(jobs))
	for i, j := range jobs {
		j.Dir = filepath.Join(dir, j.name())
		var first *Job
		if i > 0 {
			first = jobs[0]
		}
		if err := j.prepare(ctx, a, notes, first); err != nil {
			return nil, j.located(err)
		}
	}
	return jobs, nil
}

// resolve sets the configuration of the job.
func (j *Job) resolve(ctx context.Context, a *app.App) (err error) {
	if len(j.Options.Datasets.Subsets) == 0 {
		return usage.Errorf("--subset is needed: demo, verified, lite ..., or a file of rows; see mini datasets list")
	}
	j.Config, err = a.Config(ctx, &j.Options.Flags, j.Options.BuiltinConfigs()...)
	return err
}

// prepare loads what the job needs, and prints notes about it. It checks the flags and settings
// without calling a model or starting a sandbox. The only files that it writes are in the dataset
// cache. The job shares the rows and the rate limits of first, unless that is nil.
func (j *Job) prepare(ctx context.Context, a *app.App, notes io.Writer, first *Job) (err error) {
	o, cfg := j.Options, j.Config
	if j.service == nil { // the flags of a service are those of all requests
		if err := o.check(cfg); err != nil {
			return err
		}
	}
	if j.Progress, err = progress.Choose(o.progress, progress.DetectTerminal(a.Streams), progress.Kinds); err != nil && !o.dryRun {
		return err
	}
	if _, err := envopen.ContainerConfig(cfg, ""); err != nil {
		return err
	}
	if err := checkRewards(cfg.Run); err != nil {
		return err
	}
	o.PrintNotes(notes, cfg)
	if _, err := setup.NewApprovers(cfg, cfg.Environment.Class); err != nil {
		return err
	}
	if first != nil && len(first.Input.Rows) > 0 {
		j.Input = first.Input
	} else if j.Input, err = o.LoadRows(ctx, a); err != nil {
		return err
	}
	if o.hasTasks() {
		if err := checkTasks(cfg, j.Input.Rows); err != nil {
			return err
		}
	}
	if j.Agent, err = setup.NewBatchAgent(cfg, j.Input.Rows); err != nil {
		return err
	}
	if err := j.ReadEarlierRun(); err != nil {
		return err
	}
	j.checkGradable(notes)
	var limits *modelopen.Limits
	if first != nil && first.Models != nil {
		limits = first.Models.Limits
	}
	j.Models, err = modelopen.New(cfg, o.isDemo(), j.Input.Rows, limits)
	if err == nil {
		err = settings.PrintCostNote(notes, cfg)
	}
	if err == nil {
		err = j.CheckFolder()
	}
	if err == nil {
		err = j.checkRepositories()
	}
	if o.dryRun { // the plan reports the error
		j.obstacle, err = err, nil
	}
	return err
}

// check returns an error for flags that need others.
func (o *Options) check(cfg *configs.Resolved) error {
	switch {
	case o.FlagSet.Changed("replies") && cfg.Model.Class != "scripted":
		return usage.Errorf("--replies is for the scripted model, and this is %s; add --model-class scripted", cfg.Model.Class)
	case o.FlagSet.Changed("eval-workers") && !cfg.Run.Eval:
		return usage.Errorf("--eval-workers is for --eval, which is not given")
	case o.force && !cfg.Run.ResumeAttempts:
		return usage.Errorf("--force is for --resume-attempts, which is not given")
	case cfg.Agent.Class != "" && cfg.Run.ResumeAttempts:
		return usage.Errorf("--resume-attempts is for mini's own agent: the commands of the agent %.60s cannot be run again; leave it out, to begin again what was stopped", cfg.Agent.Class)
	}
	return nil
}

// Input contains the selected rows of a run and their origin. It does not hold the other rows in
// memory, since a run may last for days.
type Input struct {
	Dataset runs.Dataset
	Rows    []datasets.Instance
}

// LoadRows reads the datasets and selects rows. It returns an error if no row is left.
func (o *Options) LoadRows(ctx context.Context, a *app.App) (Input, error) {
	set, err := o.Datasets.Load(ctx, a.Streams, o.Selection.Apply)
	if err != nil {
		return Input{}, err
	}
	name := strings.Join(o.Datasets.Subsets, "+")
	if len(set.Instances) == 0 {
		return Input{}, usage.Errorf("no instance is left of the %d in %s after --instance, --filter and --slice", len(set.IDs), name)
	}
	return Input{
		Dataset: runs.Dataset{
			Name: name, Editions: set.Sources, Rows: len(set.IDs), Selected: len(set.Instances), Selection: o.Selection,
		},
		Rows: set.Instances,
	}, nil
}

// instanceIDs returns the ids of rows, in their order.
func instanceIDs(rows []datasets.Instance) []string {
	ids := make([]string, len(rows))
	for i, in := range rows {
		ids[i] = in.ID
	}
	return ids
}

// ReadEarlierRun reads the run that the folder contains already.
func (j *Job) ReadEarlierRun() (err error) {
	if err := runner.CheckFolder(j.Dir); err != nil {
		return err
	}
	j.EarlierRun, err = runs.Read(j.Dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, runs.ErrNotRunFolder) {
		j.EarlierRun, err = &runs.Run{}, nil
	}
	return err
}

// agentFolderSHA256 returns the hash of the folder of another agent; "" if it has none.
func (j *Job) agentFolderSHA256() string {
	other, ok := j.Agent.(*external.Agent)
	if !ok {
		return ""
	}
	return other.FolderSHA256()
}

// CheckFolder returns an error if the folder keeps results of another model (repetitions beyond
// the configured number do not count) or of another content of the agent's folder, or if the limit of open files is too low for the workers.
func (j *Job) CheckFolder() error {
	if old := j.EarlierRun.Manifest.AgentFolderSHA256; old != "" && old != j.agentFolderSHA256() {
		return usage.Errorf("%s was made with another content of the agent's folder; a run cannot mix two agents: pass another folder with -o", j.Dir)
	}
	missing, k := j.missing(), max(1, j.Config.Run.Attempts)
	left := 0
	for _, n := range missing {
		left += min(n, 1)
	}
	for _, in := range j.EarlierRun.Instances {
		if _, selected := missing[in.ID]; selected && j.Options.RedoExisting {
			continue // new results take the place of the earlier ones
		}
		for _, r := range in.Repetitions {
			a := in.Attempt(r.Attempt)
			if r.Class.IsResult() && r.Repetition <= k && a != nil && a.Model != "" && a.Model != modelopen.Name(j.Config) {
				return usage.Errorf("%s has results of the model %.80s; a run cannot mix predictions of two models: pass another folder with -o, or that model with -m", j.Dir, a.Model)
			}
		}
	}
	return doctor.CheckOpenFiles(min(j.Config.Run.Workers, left))
}

// checkRepositories returns an error if rows have a repository but the sandboxes use no images,
// which contain the repositories: attempts would begin in an empty folder. It also checks the
// settings of sandboxes without images. It checks nothing for the demo and with --empty-folder.
func (j *Job) checkRepositories() error {
	if !envopen.IsHostClass(j.Config.Environment.Class) || j.Options.isDemo() || j.Options.emptyFolder {
		return nil
	}
	if err := envopen.CheckSettings(j.Config, j.Config.Environment.Class); err != nil {
		return err
	}
	var lacking []string
	for _, in := range j.Input.Rows {
		if in.Repo != "" {
			lacking = append(lacking, in.ID)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return usage.Errorf("%d of %s have a repository that the %s environment does not have, the first is %s; use --environment-class docker, or --empty-folder to begin in an empty folder",
		len(lacking), text.Count(len(j.Input.Rows), "row"), j.Config.Environment.Class, lacking[0])
}

// canUseHost reports whether mini may run the commands on this machine if no container engine
// responds. It may do so only for the demo with the default environment class and without
// DOCKER_HOST.
func (j *Job) canUseHost() bool {
	return j.Options.isDemo() && envopen.IsDefaultClass(j.Config) && os.Getenv("DOCKER_HOST") == ""
}

// missing returns the number of attempts that still need a result, by instance: all of them with
// --redo-existing.
func (j *Job) missing() map[string]int {
	k := max(1, j.Config.Run.Attempts)
	missing := map[string]int{}
	for _, in := range j.Input.Rows {
		missing[in.ID] = k
	}
	for _, in := range j.EarlierRun.Instances {
		if _, selected := missing[in.ID]; selected && !j.Options.RedoExisting {
			missing[in.ID] = in.MissingResults(k)
		}
	}
	return missing
}

// remainingRows returns the rows of the instances that do not have all their results.
func (j *Job) remainingRows() []datasets.Instance {
	missing := j.missing()
	return slices.DeleteFunc(slices.Clone(j.Input.Rows), func(in datasets.Instance) bool { return missing[in.ID] == 0 })
}
