package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/rewards"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/setup"
)

// Job is a run: that of the command line, one combination of a sweep, or the branch of mini replay.
type Job struct {
	Options     *Options
	combination *combination // nil without a sweep
	Config      *configs.Resolved
	Input       Input
	Agent       runner.Agent
	Models      *modelopen.Models
	Dir         string
	// EarlierRun is the run that Dir already contains. It has no instances if Dir contains no run.
	EarlierRun *runs.Run
	// Progress is the kind of progress display.
	Progress string
	// Branch makes mini replay continue recorded attempts; nil for mini bench.
	Branch *runner.Branch
	// service has the pool and the engine of mini serve; nil for other commands.
	service *Service
	// obstacle is the error that would prevent the run from starting. Only dry runs set it.
	obstacle error
	// ungradable are the ids of the rows that --eval cannot grade, and ungradableWhy is the reason.
	ungradable    map[string]bool
	ungradableWhy string

	// The other fields are set while the job runs.

	label     string             // precedes instance ids in the display; "" without a sweep
	show      func(runner.Event) // shows the events of the job
	redact    func([]byte) []byte
	tools     *setup.Tools
	sandboxes *envopen.Sandboxes
	folder    *runner.Folder
	log       atomic.Pointer[runner.EventLog]
	ctl       *controller
	evaluator *evaluate.Evaluator // nil without --eval
	rewards   *rewards.Sender     // nil without run.reward_url
	batch     *runner.Batch
	changed   []string // settings that an earlier session had otherwise
	sum       runs.Summary
	evaluated *evaluate.Summary // nil before the end, or if nothing was evaluated
}

// Run runs the job and prints its result.
func (j *Job) Run(ctx context.Context, a *app.App) error { return runJobs(ctx, a, []*Job{j}) }

// runJobs runs jobs at the same time and prints their results: a single job, or the combinations
// of a sweep. They share the workers, the budget, the container engine and the display.
func runJobs(ctx context.Context, a *app.App, jobs []*Job) (err error) {
	first := jobs[0]
	setLabels(jobs)
	info := progress.RunInfo{
		Dataset: first.Input.Dataset.Name, Model: modelsText(jobs), Folder: first.topFolder(), HasVerdicts: first.Config.Run.Eval,
	}
	for _, j := range jobs {
		for _, in := range first.Input.Rows {
			info.IDs = append(info.IDs, j.label+in.ID)
		}
	}
	display := progress.New(first.Progress, a.Streams, info)
	defer display.Close()
	if first.Config.Run.Eval {
		if err := eval.PrepareCache(first.Config.Eval.Cache); err != nil {
			return err
		}
	}
	if first.Options.events == "-" {
		return usage.Errorf("--events -: stdout has the results of a batch; name a file")
	}
	eventLog, err := cmdutil.OpenEventLog(first.Options.events, a.Streams, func(line []byte) []byte {
		for _, j := range jobs {
			line = j.redact(line)
		}
		return line
	})
	if err != nil {
		return err
	}
	defer eventLog.Close()
	notes := notesWriter(a.Err, len(jobs))
	merged := &mergedEvents{show: display.Event, runs: make([]mergedRun, len(jobs))}
	for i, j := range jobs {
		j.show, j.redact = merged.from(i, j.label), envopen.Redact(j.Config)
		defer j.close()
	}
	// Connect to the engine before creating a folder: if no engine responds, no
	// empty run is left behind.
	var engine *envopen.Sandboxes // the first that has an engine
	if first.service != nil {
		engine = first.service.sandboxes
	}
	for _, j := range jobs {
		if err := j.connect(ctx, a, notes, engine); err != nil {
			return errors.Join(j.located(err), closeSandboxes(jobs))
		}
		if engine == nil && j.sandboxes.HasImages() {
			engine = j.sandboxes
		}
	}
	for _, j := range jobs {
		if err := j.open(ctx, notes, display.Writer(), eventLog); err != nil {
			return errors.Join(j.located(err), closeSandboxes(jobs))
		}
	}
	if first.service == nil {
		first.Models.OnLimits(progress.ProviderEvents(first.log.Load().Emit)) // the jobs share the limits
	}
	display.Controller = liveController(jobs)
	for _, j := range jobs {
		if err == nil {
			err = j.located(j.startSession())
		}
	}
	if err == nil {
		err = printStart(display.Writer(), jobs)
	}
	if err == nil {
		batches := make([]*runner.Batch, len(jobs))
		for i, j := range jobs {
			if len(j.changed) > 0 {
				text := "an earlier session in this folder had another " + strings.Join(j.changed, " and another ") + "; its results stay"
				j.log.Load().Emit(runner.Event{Type: runner.Warning, Text: text})
			}
			batches[i] = j.batch
		}
		if first.service != nil {
			first.sum, err = first.service.pool.Run(ctx, first.batch, first.Input.Rows)
		} else {
			var summaries []runs.Summary
			summaries, err = runner.RunAll(ctx, batches, first.Input.Rows)
			for i, j := range jobs {
				j.sum = summaries[i]
			}
		}
	} else {
		err = usage.Wrap(err)
	}
	for _, j := range jobs {
		if j.evaluator != nil {
			verdicts, evalErr := j.evaluator.Close()
			j.evaluated = &verdicts
			err = errors.Join(err, evalErr, j.folder.UpdateVerdicts())
		}
	}
	for _, j := range jobs {
		j.closeRewards(ctx)
		err = errors.Join(err, j.ctl.server.Close())
	}
	display.Close() // restore the screen before the summary
	err = errors.Join(err, closeSandboxes(jobs))
	isStarted, isComplete := false, true
	for _, j := range jobs {
		isStarted = isStarted || j.sum.Instances > 0
		isComplete = isComplete && j.sum.Instances > 0 && j.isComplete()
	}
	if err == nil || isStarted { // else nothing was run
		err = errors.Join(err, finishJobs(ctx, a, jobs, err))
	}
	return cmdutil.MarkDiskFull(err, isComplete)
}

// connect opens the tools and the sandboxes of the job, with the container engine of engine unless that
// is nil.
func (j *Job) connect(ctx context.Context, a *app.App, notes io.Writer, engine *envopen.Sandboxes) (err error) {
	cmdutil.PrintOutside(notes, j.Config)
	if j.tools, err = setup.NewTools(ctx, j.Config); err != nil {
		return usage.Wrap(err)
	}
	capabilities, err := j.tools.Capabilities()
	if err != nil {
		return usage.Wrap(err)
	}
	if own, ok := j.Agent.(*agent.Agent); ok {
		setup.WarnUnmentioned(notes, own, capabilities)
	}
	emit := func(e runner.Event) {
		if log := j.log.Load(); log != nil {
			log.Emit(e)
		}
	}
	observer := progress.NewObserver(emit)
	if j.combination != nil {
		// All combinations use the images of one store. An event of that does not tell
		// which of them requested the image.
		observer.Image = progress.NewObserver(func(e runner.Event) {
			if e.Instance = ""; e.Type != runner.PhaseChanged {
				emit(e)
			}
		}).Image
	}
	j.sandboxes, err = a.Sandboxes(ctx, j.Config, envopen.Options{
		Demo: j.Options.isDemo(), FallBack: j.canUseHost(), Run: j.Dir, Notes: notes, Observer: observer, Engine: engine,
	})
	if err != nil {
		return err
	}
	j.sandboxes.ScrubOnce(j.Config)
	return usage.Wrap(j.sandboxes.CheckBudget(ctx, j.remainingRows()))
}

// open opens the folder of the job, and starts the server for mini ctl and the evaluation.
func (j *Job) open(ctx context.Context, notes, display io.Writer, eventLog *cmdutil.EventLog) (err error) {
	if j.folder, err = runner.OpenWithMode(j.Dir, j.Config.Run.FolderMode()); err != nil {
		return usage.Wrap(err)
	}
	j.folder.SetVerdictFilter(eval.IsSignedByUser)
	j.ctl = &controller{folder: j.folder, state: batch.New(), models: j.Models, images: j.sandboxes.Images}
	log := runner.NewLog(j.folder, func(e runner.Event) { //nolint:contextcheck // rewards are sent also after an interrupt
		j.show(e)
		j.ctl.state.Update(e)
		if j.rewards != nil {
			j.rewards.Event(e)
		}
	})
	log.Redact = j.redact
	j.log.Store(log)
	if err := j.openRewards(); err != nil {
		return usage.Wrap(err)
	}
	if j.ctl.server, err = control.Listen(j.folder.Dir, j.ctl); err != nil { // the run continues
		j.ctl.server = nil
		log.Emit(runner.Event{Type: runner.Warning, Text: "mini ctl does not reach this run: " + err.Error()})
	}
	if err := j.newBatch(log); err != nil {
		return usage.Wrap(err)
	}
	if err := j.openEvaluation(ctx, notes, display); err != nil {
		return err
	}
	if err := j.installAgent(); err != nil {
		return err
	}
	if j.Options.hasTasks() {
		if err := j.runTasks(ctx); err != nil {
			return usage.Wrap(err)
		}
	}
	cmdutil.PrintWarnings(notes, j.tools.Warnings())
	if eventLog != nil {
		j.batch.NewBus = func(in datasets.Instance, attempt int) (*events.Bus, func()) {
			if j.combination != nil {
				in.ID = j.name() + "/" + in.ID
			}
			return eventLog.NewBus(in, attempt)
		}
	}
	return nil
}

// newBatch assembles the batch from the configuration.
func (j *Job) newBatch(log *runner.EventLog) error {
	newApprover, err := setup.NewApprovers(j.Config, j.sandboxes.Class)
	if err != nil {
		return err
	}
	ignore, err := replay.ParseIgnore(j.Config.Replay.Ignore)
	if err != nil {
		return err
	}
	header, err := setup.NewHeader(j.Config, j.sandboxes.Class)
	if err != nil {
		return err
	}
	c := j.Config.Run
	j.batch = &runner.Batch{
		Folder: j.folder, Agent: j.Agent, Sandboxes: j.sandboxes, Models: j.Models, ModelName: modelopen.Name(j.Config), Header: header, Log: log,
		NewApprover: newApprover, Control: &j.ctl.control,
		NewTools: func(in datasets.Instance, dir string) (agent.ToolServer, error) {
			return j.tools.Server(setup.AttemptPaths{Instance: in, Dir: dir})
		},
		Workers: c.Workers, Repetitions: c.Attempts, MaxTries: c.MaxTries, MaxProviderFailures: c.MaxProviderFailures,
		MaxDisruptions: j.Config.Environment.Kubernetes.DisruptionRetries,
		Budget:         runner.Budget{Cost: c.TotalCostLimit, Calls: c.TotalCallLimit},
		Redo:           j.Options.RedoExisting, ResumeAttempts: c.ResumeAttempts, Force: j.Options.force, Ignore: ignore, Branch: j.Branch,
		Sync: c.Fsync, KeepSandbox: envopen.KeepRule(c.Keep),
	}
	return nil
}

// close closes what is open, except the sandboxes.
func (j *Job) close() {
	if j.ctl != nil {
		_ = j.ctl.server.Close() // the second time, or after an error
	}
	if j.folder != nil {
		_ = j.folder.Close() // the lock ends with the process
	}
	if j.tools != nil {
		_ = j.tools.Close() // connections end with the process
	}
}

// closeSandboxes closes the sandboxes of all jobs, those that own the container engine last.
func closeSandboxes(jobs []*Job) (err error) {
	for _, j := range slices.Backward(jobs) {
		if j.sandboxes != nil {
			err = errors.Join(err, j.sandboxes.Close())
		}
	}
	return err
}

// isComplete reports whether every instance has a result and, with --eval, whether every
// submission has a verdict.
func (j *Job) isComplete() bool {
	return j.sum.Complete() && (j.evaluated == nil || j.evaluated.IsComplete())
}

// controller executes the requests of the live view and of mini ctl, and reports the status of
// the run.
type controller struct {
	folder  *runner.Folder
	control runner.Control
	state   *batch.State
	models  *modelopen.Models
	images  *imagestore.Store // nil without a container engine
	server  *control.Server
}

// Execute implements control.Controller.
func (c *controller) Execute(request runner.ControlRequest) (string, error) {
	text, err := c.control.Do(request)
	if unknown, ok := errors.AsType[*runner.UnknownTaskError](err); ok {
		if near := configs.ClosestName(request.TaskID, unknown.Known); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
	}
	return text, err
}

// Status implements control.Controller.
func (c *controller) Status(context.Context) control.Status {
	s := control.Status{Run: c.folder.Dir, PID: os.Getpid()}
	if path, err := filepath.Abs(s.Run); err == nil {
		s.Run = path
	}
	if queue, ok := c.control.QueueStatus(); ok {
		s.Queue = &queue
	}
	s.SetBatch(c.state, time.Now())
	s.Providers, s.Disk = c.Resources()
	return s
}

// Resources returns the state of providers and disks.
func (c *controller) Resources() ([]control.Provider, control.Disk) {
	providers := []control.Provider{}
	for _, e := range c.models.Limiters.States() {
		providers = append(providers, control.Provider{Endpoint: progress.Host(e.BaseURL), ProviderState: progress.ProviderState(e.State)})
	}
	return providers, c.disk()
}

// disk returns the free space for the run folder and for the engine and, with a budget for images,
// that budget and the space that images use. Unknown figures are nil.
func (c *controller) disk() (disk control.Disk) {
	if n, ok := doctor.FreeSpace(c.folder.Dir); ok {
		disk.RunFree = &n
	}
	if c.images == nil {
		return disk
	}
	s := c.images.Status()
	if s.FreeKnown {
		disk.EngineFree = &s.Free
	}
	if s.Budget > 0 {
		disk.ImageBudget = &s.Budget
		if s.Used >= 0 {
			disk.Images = &s.Used
		}
	}
	return disk
}
