package bench

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/setup"
)

// activeJob is a job that runs. Its fields are nil before they are opened.
type activeJob struct {
	*Job
	label     string             // precedes instance ids in the display; "" without a sweep
	show      func(runner.Event) // shows the events of the job
	sandboxes *envopen.Sandboxes
	folder    *runner.Folder
	log       atomic.Pointer[runner.EventLog]
	ctl       *controller
	ev        *evaluation
	batch     *runner.Batch
	changed   []string // what an earlier session had otherwise
	sum       runner.Summary
}

// Run runs the batch and prints its result.
func (j *Job) Run(ctx, kill context.Context, s cmdutil.Streams) error {
	return runJobs(ctx, kill, s, []*Job{j})
}

// runJobs runs jobs at the same time and prints their results: a single job, or the combinations
// of a sweep. They share the workers, the budget, the container engine and the display.
func runJobs(ctx, kill context.Context, s cmdutil.Streams, jobs []*Job) (err error) {
	first := jobs[0]
	labels := displayLabels(jobs, first.Progress)
	display := progress.New(first.Progress, s, runInfo(jobs, labels))
	defer display.Close()
	if first.Config.Run.Eval {
		if err := eval.PrepareCache(first.Config.Eval.Cache); err != nil {
			return err
		}
	}
	if first.events == "-" {
		return usage.Errorf("--events -: stdout has the results of a batch; name a file")
	}
	eventLog, err := cmdutil.OpenEventLog(first.events, s, redactAll(jobs))
	if err != nil {
		return err
	}
	defer eventLog.Close()
	notes := notesWriter(s.Err, len(jobs))
	merged := &mergedEvents{show: display.Event, runs: make([]mergedRun, len(jobs))}
	all := make([]*activeJob, len(jobs))
	for i, j := range jobs {
		all[i] = &activeJob{Job: j, label: labels[i], show: merged.from(i, labels[i])}
		defer all[i].close()
	}
	engine := &envopen.Sandboxes{}
	for _, a := range all {
		// Connect to the engine before creating a folder: if no engine responds, no
		// empty run is left behind.
		if err := a.connect(ctx, kill, notes, engine); err != nil {
			return errors.Join(a.located(err), closeSandboxes(all))
		}
		if !engine.HasImages() {
			engine = a.sandboxes
		}
	}
	slots := semaphore.NewWeighted(int64(eval.WorkerCount(first.Config.Eval.Workers)))
	for _, a := range all {
		if err := a.open(ctx, notes, slots, eventLog); err != nil {
			return errors.Join(a.located(err), closeSandboxes(all))
		}
	}
	first.Models.OnLimits(progress.ProviderEvents(all[0].log.Load().Emit)) // siblings share the limits
	display.Controller = newLiveController(all)
	if err = startSessions(all); err == nil {
		err = printStart(display.Writer(), jobs, labels, all[0].sandboxes.Class)
	}
	if err == nil {
		err = runBatches(ctx, all)
	} else {
		err = usage.Wrap(err)
	}
	for _, a := range all {
		err = a.finishEvaluation(ctx, display.Writer(), err)
	}
	for _, a := range all {
		err = errors.Join(err, a.ctl.server.Close())
	}
	display.Close() // restore the screen before the summary
	err = errors.Join(err, closeSandboxes(all))
	isStarted, isComplete := false, true
	for _, a := range all {
		isStarted = isStarted || a.sum.Instances > 0
		isComplete = isComplete && a.sum.Instances > 0 && a.isComplete(a.sum)
	}
	if err == nil || isStarted { // else nothing was run
		err = errors.Join(err, finishJobs(ctx, s, all, err))
	}
	return cmdutil.MarkDiskFull(err, isComplete)
}

// startSessions writes the manifests of all jobs.
func startSessions(all []*activeJob) error {
	for _, a := range all {
		if err := a.startSession(); err != nil {
			return a.located(err)
		}
	}
	return nil
}

// runBatches runs the batches and stores their summaries.
func runBatches(ctx context.Context, all []*activeJob) error {
	batches := make([]*runner.Batch, len(all))
	for i, a := range all {
		a.warnOfChanges()
		batches[i] = a.batch
	}
	summaries, err := runner.RunAll(ctx, batches, all[0].Input.Rows)
	for i, a := range all {
		a.sum = summaries[i]
	}
	return err
}

// connect opens the tools and the sandboxes of the job, with the container engine of engine if that
// has one.
func (a *activeJob) connect(ctx, kill context.Context, notes io.Writer, engine *envopen.Sandboxes) (err error) {
	if a.tools, err = setup.NewTools(ctx, a.Config); err != nil {
		return usage.Wrap(err)
	}
	if a.capabilities, err = a.tools.Capabilities(); err != nil {
		return usage.Wrap(err)
	}
	if own, ok := a.Agent.(*agent.Agent); ok {
		setup.WarnUnmentioned(notes, own, a.capabilities)
	}
	emit := func(e runner.Event) {
		if log := a.log.Load(); log != nil {
			log.Emit(e)
		}
	}
	observer := progress.NewObserver(emit)
	if a.combination != nil {
		// All combinations use the images of one store. An event of that does not tell
		// which of them requested the image.
		observer.Image = progress.NewObserver(func(e runner.Event) {
			if e.Instance = ""; e.Type != runner.PhaseChanged {
				emit(e)
			}
		}).Image
	}
	a.sandboxes, err = engine.Sibling(ctx, kill, a.Config, a.isDemo(), a.canUseHost(), a.Dir, notes, observer)
	if err != nil {
		return err
	}
	a.sandboxes.ScrubOnce(a.Config)
	return usage.Wrap(a.sandboxes.CheckBudget(ctx, a.remainingRows()))
}

// open opens the folder of the job, and starts the server for mini ctl and the evaluation.
func (a *activeJob) open(ctx context.Context, notes io.Writer, slots *semaphore.Weighted, eventLog *cmdutil.EventLog) (err error) {
	if a.folder, err = runner.Open(a.Dir); err != nil {
		return usage.Wrap(err)
	}
	a.folder.SetVerdictFilter(eval.IsSignedByUser)
	a.ctl = &controller{folder: a.folder, models: a.Models, images: a.sandboxes.Images}
	log := runner.NewLog(a.folder, func(e runner.Event) {
		a.show(e)
		a.ev.countVerdict(e)
		a.ctl.tracker.Update(e)
	})
	log.Redact = envopen.Redact(a.Config)
	a.log.Store(log)
	a.ctl.listen(log)
	if a.ev, err = a.startEvaluation(ctx, notes, a.sandboxes, a.folder, log, slots); err != nil {
		return err
	}
	if a.batch, err = a.newBatch(a.sandboxes, a.folder, log); err != nil {
		return usage.Wrap(err)
	}
	if err := a.installAgent(); err != nil {
		return err
	}
	if a.hasTasks() {
		if err := a.runTasks(ctx, log); err != nil {
			return usage.Wrap(err)
		}
	}
	cmdutil.PrintWarnings(notes, a.tools.Warnings())
	a.batch.Control = &a.ctl.control
	if eventLog != nil {
		a.batch.NewBus = a.newBus(eventLog)
	}
	if a.ev != nil {
		a.batch.OnSubmission = a.ev.submit
	}
	return nil
}

// finishEvaluation waits for the verdicts. It returns runErr and its own errors.
func (a *activeJob) finishEvaluation(ctx context.Context, w io.Writer, runErr error) error {
	if a.ev == nil {
		return runErr
	}
	verdicts, err := a.ev.wait(ctx, w, runErr)
	a.evaluated = &verdicts
	return errors.Join(runErr, err, a.folder.UpdateVerdicts())
}

// close closes what is open, except the sandboxes.
func (a *activeJob) close() {
	if a.ctl != nil {
		_ = a.ctl.server.Close() // the second time, or after an error
	}
	if a.folder != nil {
		_ = a.folder.Close() // the lock ends with the process
	}
	if a.tools != nil {
		_ = a.tools.Close() // connections end with the process
	}
}

// closeSandboxes closes the sandboxes of all jobs, those that own the container engine last.
func closeSandboxes(all []*activeJob) (err error) {
	for _, a := range slices.Backward(all) {
		if a.sandboxes != nil {
			err = errors.Join(err, a.sandboxes.Close())
		}
	}
	return err
}

// redactAll returns a function that removes the secrets of all jobs.
func redactAll(jobs []*Job) func([]byte) []byte {
	var redact []func([]byte) []byte
	for _, j := range jobs {
		if f := envopen.Redact(j.Config); f != nil {
			redact = append(redact, f)
		}
	}
	return func(line []byte) []byte {
		for _, f := range redact {
			line = f(line)
		}
		return line
	}
}

// runInfo describes the jobs for the display.
func runInfo(jobs []*Job, labels []string) progress.RunInfo {
	first := jobs[0]
	info := progress.RunInfo{
		Dataset: first.Input.Dataset.Name, Model: modelsText(jobs), Folder: first.topFolder(), HasVerdicts: first.Config.Run.Eval,
	}
	for _, label := range labels {
		for _, in := range first.Input.Rows {
			info.IDs = append(info.IDs, label+in.ID)
		}
	}
	return info
}

// modelsText names the model of the jobs, or the number of combinations.
func modelsText(jobs []*Job) string {
	if jobs[0].combination != nil {
		return combinationsText(len(jobs))
	}
	return modelopen.Name(jobs[0].Config)
}

// isScripted reports whether no job calls a model.
func isScripted(jobs []*Job) bool {
	return !slices.ContainsFunc(jobs, func(j *Job) bool { return j.Config.Model.Class != "scripted" })
}
