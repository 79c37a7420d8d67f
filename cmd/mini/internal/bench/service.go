package bench

import (
	"context"
	"errors"
	"io"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// Service runs jobs that are added while it works, for mini serve. They share the
// workers, the budget, the container engine and the limits of models.
type Service struct {
	options   *Options
	app       *app.App // prints nothing
	config    *configs.Resolved
	limits    *modelopen.Limits
	sandboxes *envopen.Sandboxes
	pool      *runner.Pool
	// Rows are the rows of each dataset of the service, by its name and the id.
	Rows map[string]map[string]datasets.Instance
	sets map[string]datasets.Set
}

// OpenService reads the datasets, connects to the container engine and starts the
// workers. The flags of o hold for all jobs.
func OpenService(ctx context.Context, a *app.App, o *Options, limits *modelopen.Limits) (*Service, error) {
	quiet := a.Streams
	quiet.Out, quiet.Err = io.Discard, io.Discard
	s := &Service{
		options: o, app: &app.App{Streams: quiet, Kill: a.Kill, LoadDotenv: a.LoadDotenv}, limits: limits,
		Rows: map[string]map[string]datasets.Instance{}, sets: map[string]datasets.Set{},
	}
	var err error
	if s.config, err = a.ConfigWithoutModel(ctx, &o.Flags, o.BuiltinConfigs()...); err != nil {
		return nil, err
	}
	if err := checkRewards(s.config.Run); err != nil {
		return nil, err
	}
	for _, name := range o.Datasets.Subsets {
		one := o.Datasets
		one.Subsets = []string{name}
		set, err := one.Load(ctx, a.Streams, func(ids []string) ([]string, error) { return ids, nil })
		if err != nil {
			return nil, err
		}
		s.sets[name], s.Rows[name] = set, make(map[string]datasets.Instance, len(set.Instances))
		for _, in := range set.Instances {
			s.Rows[name][in.ID] = in
		}
	}
	if err := eval.PrepareCache(s.config.Eval.Cache); err != nil {
		return nil, err
	}
	if s.sandboxes, err = a.Sandboxes(ctx, s.config, envopen.Options{Demo: o.isDemo(), Run: o.Output}); err != nil {
		return nil, err
	}
	c := s.config.Run
	s.pool = runner.NewPool(c.Workers, eval.WorkerCount(s.config.Eval.Workers), runner.Budget{Cost: c.TotalCostLimit, Calls: c.TotalCallLimit}) //nolint:contextcheck // each job has the context of its run
	return s, nil
}

// Close waits for the jobs, and closes the sandboxes.
func (s *Service) Close() error {
	s.pool.Close()
	return s.sandboxes.Close()
}

// Workers returns the number of workers for attempts and for evaluations.
func (s *Service) Workers() (attempts, evaluations int) {
	return s.config.Run.Workers, eval.WorkerCount(s.config.Eval.Workers)
}

// HasModel reports whether the configuration of the service names a model on a server.
func (s *Service) HasModel() bool {
	return s.config.Model.Name != "" && s.config.Model.Class != "scripted"
}

// Pool returns the pool of the jobs.
func (s *Service) Pool() *runner.Pool { return s.pool }

// Request describes a job of a service.
type Request struct {
	// Subset is a dataset of the service, a file of rows, or a task in Harbor's form. Instance is the id of the
	// row; "" means the only one.
	Subset, Instance string
	// Settings are laid over those of the service.
	Settings []configs.Layer
	// Key is the key for the address in Settings; nil if that is the service's own.
	Key *string
	Dir string // the folder of the run
}

// Job returns the job of a request. Its errors are those of the request; it has run
// nothing yet.
func (s *Service) Job(ctx context.Context, r Request) (*Job, error) {
	one := *s.options
	one.Combination = r.Settings
	one.Datasets.Subsets = []string{r.Subset}
	one.Selection = datasets.Selection{}
	if r.Instance != "" {
		one.Selection.IDs = []string{r.Instance}
	}
	j := &Job{Options: &one, Dir: r.Dir, service: s}
	if err := j.resolve(ctx, s.app); err != nil {
		return nil, err
	}
	if r.Key != nil {
		j.Config.SetModelKey(*r.Key)
	}
	shared := &Job{Models: &modelopen.Models{Limits: s.limits}}
	if in, ok := s.Rows[r.Subset][r.Instance]; ok {
		set := s.sets[r.Subset]
		shared.Input.Rows = []datasets.Instance{in}
		shared.Input.Dataset.Name, shared.Input.Dataset.Editions = r.Subset, set.Sources
		shared.Input.Dataset.Rows, shared.Input.Dataset.Selected = len(set.IDs), 1
		shared.Input.Dataset.Selection = one.Selection
	}
	return j, j.prepare(ctx, s.app, io.Discard, shared)
}

// RunJob runs a job, and returns an error if it did not run to its end.
func (s *Service) RunJob(ctx context.Context, j *Job) error {
	err := j.Run(ctx, s.app)
	if j.sum.BudgetExhausted && !j.sum.Complete() {
		return errors.New("the budget of the service is spent")
	}
	if j.sum.Halt != nil {
		return j.sum.Halt // without the command that continues a batch
	}
	if ctx.Err() == nil && j.sum.Instances > 0 && errors.Is(err, cmdutil.ErrIncomplete) {
		return nil // the attempts say why
	}
	return err
}

// IsDone reports whether all attempts of the job have results from an earlier run.
func (j *Job) IsDone() bool { return len(j.remainingRows()) == 0 }

// Row returns a row of a dataset of the service, or the only row of a file of rows.
func (s *Service) Row(ctx context.Context, subset, instance string) (datasets.Instance, error) {
	if in, ok := s.Rows[subset][instance]; ok {
		return in, nil
	}
	flags := s.options.Datasets
	flags.Subsets = []string{subset}
	set, err := flags.Load(ctx, s.app.Streams, func(ids []string) ([]string, error) { return ids, nil })
	if err != nil {
		return datasets.Instance{}, err
	}
	if len(set.Instances) != 1 {
		return datasets.Instance{}, usage.Errorf("%d rows, want 1", len(set.Instances))
	}
	return set.Instances[0], nil
}

// Evaluate returns the verdict on a patch, with the files of the evaluation in dir. It
// runs no tests if there is a verdict with the user's signature in dir or in the cache.
func (s *Service) Evaluate(ctx context.Context, subset string, in datasets.Instance, patch, dir string) (*verdicts.Record, error) {
	c := eval.EvaluateConfig(s.config)
	c.Editions, c.Selected, c.Pool = s.sets[subset].Sources, []string{in.ID}, s.pool
	task := evaluate.NewTask(in, "patch", []byte(patch))
	if err := c.CheckTasks([]evaluate.Task{task})[0]; err != nil {
		return nil, usage.Wrap(err)
	}
	if !s.sandboxes.HasImages() {
		return nil, usage.Errorf("verdicts need containers, and the sandboxes of this service are %s", s.sandboxes.Class)
	}
	sandboxes, err := eval.NewSandboxes(ctx, s.sandboxes, s.config, dir)
	if err != nil {
		return nil, err
	}
	if c.SigningKey, err = eval.EnsureKey(ctx); err != nil {
		return nil, err
	}
	folder, err := runner.OpenWithMode(dir, s.config.Run.FolderMode())
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // the process releases the lock anyway
	folder.SetVerdictFilter(eval.IsSignedByUser)
	c.Folder, c.Sandboxes = folder, sandboxes
	c.Log = runner.NewLog(folder, func(runner.Event) {})
	c.Log.Redact = envopen.Redact(s.config)
	sum, err := evaluate.Run(ctx, c, []evaluate.Task{task})
	if err != nil || len(sum.Records) == 0 {
		return nil, errors.Join(err, ctx.Err())
	}
	return &sum.Records[0], nil
}
