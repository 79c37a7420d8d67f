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
	"slices"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/runs"
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
	// Evaluate returns the evaluation of the prediction of a repetition that has a
	// result, starting with those from earlier sessions unless Redo is set. It returns
	// nil if the prediction is not to be evaluated. Workers call it concurrently; it
	// must be quick. It may be nil.
	Evaluate func(in datasets.Instance, rep int, p trajectories.Prediction) Work
	// EvaluationWorkers is the number of evaluations that run at the same time.
	EvaluationWorkers int
	// OnAttemptsEnd is called when all attempts have ended, with the number of pending
	// evaluations. It may be nil.
	OnAttemptsEnd func(pending int)
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
	skipped   int // number of tasks that had a result before
	queue     *queue
	tracker   *budgetTracker
	breaker   circuitBreaker
}

// Run runs the instances and the evaluations of their submissions, and returns a summary
// of the outcomes. If ctx is cancelled with cause agent.ErrInterrupted, Run starts nothing
// more, the running attempts save their diff and end, and evaluations end without a
// verdict. Run returns an error if the run's folder cannot be read or written.
func (b *Batch) Run(ctx context.Context, instances []datasets.Instance) (runs.Summary, error) {
	summaries, err := RunAll(ctx, []*Batch{b}, instances)
	return summaries[0], err
}

// RunAll runs the instances in several batches at the same time, and returns a summary
// of each batch. The batches share the workers and the budget of the first one, and as
// many workers of evaluations as the one with the most has. Each has its own circuit
// breaker and its own Control. RunAll is otherwise like Run; an error of one batch stops
// all of them.
func RunAll(ctx context.Context, batches []*Batch, instances []datasets.Instance) ([]runs.Summary, error) {
	start := time.Now()
	summaries := make([]runs.Summary, len(batches))
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
	p := newPool()
	taskCount, evaluationWorkers := 0, 0
	for _, b := range batches {
		b.start(ctx, stop, p, instances)
		defer b.stop(nil)
		defer b.Control.attach(nil)
		defer context.AfterFunc(b.ctx, p.wake)() //nolint:contextcheck // derived from ctx
		taskCount += len(b.queue.jobs[attempts])
		evaluationWorkers = max(evaluationWorkers, b.EvaluationWorkers)
	}
	p.takeTurns(p.queues)
	for _, b := range batches {
		b.Control.attach(b.queue)
	}
	stopPrefetch := func() {}
	if s, ok := batches[0].Sandboxes.(Prefetcher); ok {
		stopPrefetch = s.Prefetch(ctx, p.pendingInstances(instances))
	}
	p.start(attempts, min(batches[0].Workers, taskCount)) //nolint:contextcheck // each job has the context of its run
	p.start(evaluations, evaluationWorkers)               //nolint:contextcheck // as above
	_ = p.wait(attempts)                                  // the second wait returns all errors
	stopPrefetch()
	var err error
	for i, b := range batches {
		var finishErr error
		summaries[i], finishErr = b.finish(ctx, instances, start)
		err = errors.Join(err, finishErr)
	}
	p.mu.Lock()
	p.attemptsOver = true // the workers of evaluations end when none is left
	p.changed.Broadcast()
	p.mu.Unlock()
	err = errors.Join(p.wait(evaluations), err)
	return summaries, err
}

// takeTurns queues the pending tasks of runs in turns, the first of each, then the second
// of each, so that one of them can prefetch the images for all.
func (p *pool) takeTurns(queues []*queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	for i, left := 0, true; left; i++ {
		left = false
		for _, q := range queues {
			if i < len(q.jobs[attempts]) {
				if left = true; q.jobs[attempts][i].state == stateQueued {
					q.push(q.jobs[attempts][i])
				}
			}
		}
	}
}

// pendingInstances returns the instances that have a waiting task.
func (p *pool) pendingInstances(instances []datasets.Instance) []datasets.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	isPending := map[string]bool{}
	for _, j := range p.waiting[attempts] {
		isPending[j.instance] = true
	}
	return slices.DeleteFunc(slices.Clone(instances), func(in datasets.Instance) bool { return !isPending[in.ID] })
}

// start makes the jobs of the batch's tasks. Those without a result, or all with Redo,
// are to be queued. stop ends ctx, at an error of one.
func (b *Batch) start(ctx context.Context, stop context.CancelCauseFunc, p *pool, instances []datasets.Instance) {
	b.ctx, b.stop = context.WithCancelCause(ctx)
	b.queue = p.newQueue(ctx, stop, b.Log, Retries{b.MaxTries, b.MaxDisruptions})
	b.queue.ctx[attempts], b.queue.isBudgetSpent = b.ctx, b.tracker.isSpent
	b.breaker.reset(b.MaxProviderFailures, b.stop)
	b.skipped = 0
	var tasks []*task
	n := max(1, b.Repetitions)
	for _, in := range instances { // the repetitions of an instance are adjacent, so that its image is pulled once
		for rep := 1; rep <= n; rep++ {
			t := &task{batch: b, Instance: in, repetition: rep, single: n == 1}
			t.job = b.queue.add(attempts, in.ID, t.event(Event{}).Repetition, t)
			if b.Redo || !b.store.hasResult(in.ID, rep) {
				t.job.state = stateQueued
			} else {
				b.skipped++
			}
			tasks = append(tasks, t)
		}
	}
	started := Event{Type: RunStarted, Total: len(tasks), Skipped: b.skipped, Workers: b.Workers}
	if n > 1 {
		started.Repetition = n
	}
	b.Log.Emit(started)
	for _, err := range b.store.readErrors {
		b.Log.Emit(Event{Type: Warning, Text: err.Error()})
	}
	for _, t := range tasks {
		if !b.Redo {
			t.submit()
		}
	}
}

// finish writes the results of the batch, whose attempts have ended, and returns its
// summary.
func (b *Batch) finish(ctx context.Context, instances []datasets.Instance, start time.Time) (runs.Summary, error) {
	b.queue.pool.mu.Lock()
	b.queue.close()
	drained, pending := b.queue.draining, b.queue.pendingEvaluations()
	b.queue.pool.mu.Unlock()
	err := b.store.flush()
	summary := b.store.summary(instances, max(1, b.Repetitions))
	summary.Skipped = b.skipped
	summary.KeptSandboxes = int(b.keptCount.Load())
	summary.Halt = b.breaker.err()
	summary.Elapsed = time.Since(start)
	summary.BudgetExhausted = b.tracker.isSpent()
	summary.Drained = drained && !summary.Complete()
	b.Log.Emit(Event{Type: RunFinished, Summary: &summary})
	if b.OnAttemptsEnd != nil && ctx.Err() == nil {
		b.OnAttemptsEnd(pending)
	}
	return summary, errors.Join(err, b.Folder.eventsErr())
}
