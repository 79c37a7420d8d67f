// Package runner runs a batch: it takes instances from a queue, gives each a
// sandbox and a model, runs the agent, and stores the results in the run's folder.
// It uses sandboxes and models through interfaces.
//
// The journals of the attempts are authoritative; all other files are derived from
// them. Batch.Run continues the run of an existing folder: it attempts an instance
// again if the class of its outcome does not count as a result.
//
//	folder, err := runner.Open(dir)
//	defer folder.Close()
//	b := runner.Batch{
//		Folder: folder, Agent: a, Sandboxes: s, Models: m, Workers: 8, MaxTries: 3,
//		Log: runner.NewLog(folder, nil),
//	}
//	summary, err := b.Run(ctx, instances)
package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

// Sandboxes starts sandboxes for instances.
type Sandboxes interface {
	Start(ctx context.Context, in datasets.Instance) (env.Environment, error)
}

// Prefetcher is implemented by Sandboxes that can prepare images in advance.
// Prefetch starts to prepare the images of the instances, in order. It continues
// until ctx ends or the caller calls stop, which waits for it.
type Prefetcher interface {
	Prefetch(ctx context.Context, todo []datasets.Instance) (stop func())
}

// Models makes the models of attempts. For returns a new model at each call.
type Models interface {
	For(in datasets.Instance) (model.Model, error)
}

// SummaryModels is implemented by Models that have a separate model for summaries of
// long conversations. A nil model means that the attempt's own model writes them.
type SummaryModels interface {
	SummaryModel(in datasets.Instance) (model.Model, error)
}

// Batch configures and runs a batch. Required fields are Folder, Agent, Sandboxes,
// Models, Header, ModelName, Workers, MaxTries and Log.
type Batch struct {
	Folder    *Folder
	Agent     Agent
	Sandboxes Sandboxes
	Models    Models
	// Header is the template of the journals' headers. It has the fields that are
	// the same for all attempts.
	Header trajectories.Header
	// ModelName is the model's name in preds.json.
	ModelName string
	Workers   int
	// Repetitions is the number of results wanted per instance (pass@k); 0 means
	// 1. preds.json and the trajectory have the first repetition.
	Repetitions int
	// MaxTries limits the attempts of this run at one repetition, including
	// retries after a failure of the sandbox or the provider; at least 1.
	MaxTries int
	// MaxDisruptions is the number of attempts at one repetition that may end with
	// env.SandboxDisrupted without counting as a try; 0 means that each counts.
	MaxDisruptions int
	// Budget limits the cost and calls of the run. When it is spent, attempts are
	// interrupted before their next call. A later run with a larger budget retries
	// them.
	Budget Budget
	// MaxProviderFailures is the number of consecutive instances that may fail at
	// the model's provider, with no answered call in between, before the run
	// stops. The other instances stay pending. 0 means no limit.
	MaxProviderFailures int
	// Branch makes attempts continue other attempts; may be nil.
	Branch *Branch
	// Redo reruns instances that have a result. It does not delete earlier
	// attempts.
	Redo bool
	// ResumeAttempts resumes the newest attempt at a repetition if that was
	// interrupted or failed temporarily, instead of starting another. It requires an
	// *agent.Agent, whose commands can be run again.
	ResumeAttempts bool
	// Force makes ResumeAttempts continue even if a rerun command diverges.
	Force bool
	// Ignore matches parts of outputs that may differ when a command is rerun.
	Ignore replay.IgnoreRules
	// Sync selects when journals are synced to disk.
	Sync trajectories.SyncPolicy
	// KeepSandbox reports whether to keep the sandbox of an ended attempt (see
	// Keeper); nil keeps none.
	KeepSandbox func(trajectories.Outcome) bool
	// OnSubmission is called with the prediction of each repetition that has a
	// result, starting with those from earlier sessions unless Redo is set.
	// Workers call it concurrently; it must be quick. It may be nil.
	OnSubmission func(in datasets.Instance, rep int, p trajectories.Prediction)
	// NewTools returns the tools of an attempt; dir is the folder of its journal.
	// NewTools and its result may be nil.
	NewTools func(in datasets.Instance, dir string) (agent.ToolServer, error)
	// NewApprover returns the approver of an attempt's commands; nil allows all.
	NewApprover func(in datasets.Instance) agent.Approver
	// NewAgent returns the agent of an attempt at a repetition; nil means Agent for all.
	NewAgent func(in datasets.Instance, repetition, attempt int) Agent
	// NewBus returns the bus for an attempt's events; done is called when the
	// attempt has ended. It may be nil.
	NewBus func(in datasets.Instance, attempt int) (bus *events.Bus, done func())
	// Control accepts requests during the run; it may be nil.
	Control *Control
	// Log receives the events of the run.
	Log *EventLog

	keptCount atomic.Int32
	ctx       context.Context //nolint:containedctx // of the run in progress
	stop      context.CancelCauseFunc
	store     *resultStore
	todo      []task
	queue     *queue
	tracker   *budgetTracker
	breaker   circuitBreaker
}

// Summary is the result of a run.
type Summary struct {
	Instances       int                        `json:"instances"`                // requested
	Repetitions     int                        `json:"samples,omitempty"`        // per instance, if more than one; the next fields count repetitions
	Skipped         int                        `json:"skipped"`                  // had a result before
	Classes         map[trajectories.Class]int `json:"classes"`                  // of all requested
	Unstarted       int                        `json:"unstarted"`                // without an ended attempt
	KeptSandboxes   int                        `json:"kept,omitempty"`           // number of sandboxes kept
	Cost            *model.Cost                `json:"cost"`                     // of this run's attempts; null if no cost is known
	Unpriced        int64                      `json:"unpriced_calls,omitempty"` // calls of unknown cost
	BudgetExhausted bool                       `json:"budget_exhausted,omitempty"`
	Halt            *HaltError                 `json:"halt,omitempty"`    // why the run was stopped
	Drained         bool                       `json:"drained,omitempty"` // ended early by a drain request
	Elapsed         time.Duration              `json:"-"`
}

// KnownCost returns the cost, or 0 if it is unknown.
func (s Summary) KnownCost() model.Cost {
	if s.Cost == nil {
		return 0
	}
	return *s.Cost
}

// ExpectedResults returns the number of results requested.
func (s Summary) ExpectedResults() int { return s.Instances * max(1, s.Repetitions) }

// Results returns the number of results.
func (s Summary) Results() int {
	return s.Classes[trajectories.Submitted] + s.Classes[trajectories.Limit]
}

// Complete reports whether all results are present.
func (s Summary) Complete() bool { return s.Results() == s.ExpectedResults() }

// retryDelay is the wait before the first retry. The wait before retry n is n times
// as long.
const retryDelay = time.Second

// Run runs the instances and returns a summary of the outcomes. If ctx is cancelled
// with cause agent.ErrInterrupted, Run starts no more attempts, and the running ones
// save their diff and end. Run returns an error if the run's folder cannot be read
// or written.
func (b *Batch) Run(ctx context.Context, instances []datasets.Instance) (Summary, error) {
	summaries, err := RunAll(ctx, []*Batch{b}, instances)
	return summaries[0], err
}

// RunAll runs the instances in several batches at the same time, and returns a summary
// of each batch. The batches share the workers and the budget of the first one. Each
// has its own circuit breaker and its own Control. RunAll is otherwise like Run; an
// error of one batch stops all of them.
func RunAll(ctx context.Context, batches []*Batch, instances []datasets.Instance) ([]Summary, error) {
	start := time.Now()
	summaries := make([]Summary, len(batches))
	tracker := &budgetTracker{budget: batches[0].Budget}
	for _, b := range batches {
		var err error
		if b.store, err = b.Folder.openResultStore(b.ModelName); err != nil {
			return summaries, err
		}
		b.tracker = tracker
		tracker.addEarlier(b.Folder, b.store)
	}
	// A write error stops the run, because later results would be lost.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lock := &queueLock{}
	taskCount := 0
	for _, b := range batches {
		b.start(ctx, lock, instances)
		defer b.stop(nil)
		defer b.Control.attach(nil)
		defer context.AfterFunc(b.ctx, b.queue.wake)() //nolint:contextcheck // derived from ctx
		taskCount += len(b.queue.jobs)
	}
	// The batches take turns, so that one of them can prefetch the images for all.
	if p, ok := batches[0].Sandboxes.(Prefetcher); ok {
		defer p.Prefetch(ctx, pendingInstances(batches, instances))()
	}
	workers := new(errgroup.Group)
	for range min(batches[0].Workers, taskCount) {
		workers.Go(func() error { //nolint:contextcheck // each batch has a context derived from ctx
			err := runWorker(lock, batches)
			if err != nil {
				stop(agent.ErrInterrupted)
			}
			return err
		})
	}
	err := workers.Wait()
	for i, b := range batches {
		var finishErr error
		summaries[i], finishErr = b.finish(instances, start)
		err = errors.Join(err, finishErr)
	}
	return summaries, err
}

// start queues the tasks of the batch.
func (b *Batch) start(ctx context.Context, lock *queueLock, instances []datasets.Instance) {
	all := b.tasks(instances)
	b.todo = b.pending(b.store, all)
	b.queue = newQueue(lock, b.Log, b.tracker.isSpent, all, b.todo)
	b.ctx, b.stop = context.WithCancelCause(ctx)
	b.breaker.reset(b.MaxProviderFailures, b.stop)
	b.Log.Emit(Event{Type: RunStarted, Total: len(all), Skipped: len(all) - len(b.todo), Workers: b.Workers, Repetition: b.reportedRepetitions()})
	for _, err := range b.store.readErrors {
		b.Log.Emit(Event{Type: Warning, Text: err.Error()})
	}
	for _, j := range b.queue.jobs {
		if !b.Redo {
			b.reportSubmission(b.store, j)
		}
	}
	b.Control.attach(b.queue)
}

// finish writes the results of the batch, whose workers have ended, and returns its
// summary.
func (b *Batch) finish(instances []datasets.Instance, start time.Time) (Summary, error) {
	drained := b.queue.close()
	err := b.store.flush()
	summary := b.store.summary(instances, max(1, b.Repetitions))
	summary.Skipped = len(b.queue.jobs) - len(b.todo)
	summary.KeptSandboxes = int(b.keptCount.Load())
	summary.Halt = b.breaker.err()
	summary.Elapsed = time.Since(start)
	summary.BudgetExhausted = b.tracker.isSpent()
	summary.Drained = drained && !summary.Complete()
	b.Log.Emit(Event{Type: RunFinished, Summary: &summary})
	return summary, errors.Join(err, b.Folder.eventsErr())
}

// runWorker runs tasks one after the other until nextTask returns none.
func runWorker(lock *queueLock, batches []*Batch) error {
	for {
		b, j, jobCtx := nextTask(lock, batches)
		if j == nil {
			return nil
		}
		err := b.runTask(jobCtx, j, b.store)
		b.queue.release(j)
		if err != nil {
			return err
		}
	}
}

// runTask makes attempts at a task until it has a result, its failure is permanent,
// its tries are used up, or a request stops it.
func (b *Batch) runTask(ctx context.Context, j *job, store *resultStore) error {
	defer b.Log.Emit(j.event(Event{Type: PhaseChanged, Phase: PhaseReleased}))
	t := j.task
	for {
		n, out, err := b.resumeOrStart(ctx, t, store)
		if err != nil {
			return fmt.Errorf("instance %s: %w", t.ID, err)
		}
		t.forceNew = false
		if out.ExitStatus == string(env.SandboxDisrupted) && j.disruptions < b.MaxDisruptions {
			j.disruptions++
		} else {
			j.tries++
		}
		retry := out.Class.IsRetryable() && !isPermanent(out) && !b.breaker.isRetryUseless(out) && j.tries < b.MaxTries && ctx.Err() == nil
		retry = b.queue.attemptFinished(j, n, out, retry)
		if err := store.record(t.ID, t.repetition, n, out); err != nil {
			return fmt.Errorf("instance %s: %w", t.ID, err)
		}
		if !retry {
			b.breaker.onInstanceEnd(out)
			b.reportSubmission(store, j)
			return nil
		}
		wait := time.Duration(j.tries+j.disruptions) * retryDelay
		b.Log.Emit(t.event(Event{Type: PhaseChanged, Phase: PhaseWaiting, Attempt: n, Elapsed: wait.Seconds()}))
		if !sleep(ctx, wait) || !b.queue.mayRetry(j) {
			return nil
		}
	}
}

// reportSubmission calls OnSubmission if a task has a new submission.
func (b *Batch) reportSubmission(store *resultStore, j *job) {
	if b.OnSubmission == nil {
		return
	}
	store.mu.Lock()
	p, ok := store.prediction(j.ID, j.repetition)
	if ok {
		n := store.instances[j.ID].repetitions[j.repetition].attempt
		ok, j.reported = n != j.reported, n
	}
	store.mu.Unlock()
	if ok {
		b.OnSubmission(j.Instance, j.repetition, p)
	}
}

// isPermanent reports whether a retry would fail in the same way.
func isPermanent(out trajectories.Outcome) bool {
	switch out.ExitStatus {
	case string(env.ImageNotFound), string(env.ImageBuildFailed), string(env.RepositoryRefused), string(env.SandboxRefused), string(model.AuthenticationError), string(model.BadRequest), string(model.ScriptExhausted):
		return true
	}
	return false
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
