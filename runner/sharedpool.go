package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/runs"
)

// Pool is a pool whose runs are added while it works, as a service needs it. The runs
// share its workers and its budget, and their jobs run in the order in which they were
// added. An error of one run does not end the others.
type Pool struct {
	pool    *pool
	tracker *budgetTracker
}

// NewPool starts the workers for attempts and for evaluations. The budget is that of all
// attempts of the pool.
func NewPool(workers, evaluationWorkers int, budget Budget) *Pool {
	p := &Pool{newPool(), &budgetTracker{budget: budget}}
	p.pool.accepting = true
	p.pool.start(attempts, workers)
	p.pool.start(evaluations, evaluationWorkers)
	return p
}

// Close waits until the added runs have ended. No more may be added.
func (p *Pool) Close() {
	p.pool.mu.Lock()
	p.pool.accepting, p.pool.attemptsOver = false, true
	p.pool.changed.Broadcast()
	p.pool.mu.Unlock()
	_ = p.pool.wait(attempts) // Run and RunEvaluations return the errors
	_ = p.pool.wait(evaluations)
}

// Waiting returns the number of attempts and of evaluations that wait for a worker.
func (p *Pool) Waiting() (waitingAttempts, waitingEvaluations int) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return len(p.pool.waiting[attempts]), len(p.pool.waiting[evaluations])
}

// IsBudgetSpent reports whether the budget allows no more attempts.
func (p *Pool) IsBudgetSpent() bool { return p.tracker.isSpent() }

// Run runs a batch like Batch.Run, with the workers and the budget of the pool instead of
// the batch's. Images are not prefetched.
func (p *Pool) Run(ctx context.Context, b *Batch, instances []datasets.Instance) (summary runs.Summary, err error) {
	start := time.Now()
	if b.store, err = b.Folder.openResultStore(b.ModelName); err != nil {
		return summary, err
	}
	b.tracker = p.tracker
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b.start(ctx, stop, p.pool, instances)
	defer b.stop(nil)
	q := b.queue
	defer p.pool.remove(q)
	defer context.AfterFunc(b.ctx, p.pool.wake)() //nolint:contextcheck // derived from ctx
	p.pool.takeTurns([]*queue{q})
	b.Control.attach(q)
	defer b.Control.attach(nil)
	p.pool.await(func() bool { return !q.isOpen() && !q.hasWorker(attempts) })
	summary, err = b.finish(ctx, instances, start)
	return summary, errors.Join(p.pool.awaitEvaluations(q), err)
}

// RunEvaluations runs evaluations without attempts, like the function of the same name,
// with the workers of the pool.
func (p *Pool) RunEvaluations(ctx context.Context, retries Retries, log *EventLog, all []Work) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	q := p.pool.newQueue(ctx, stop, log, retries)
	defer p.pool.remove(q)
	defer context.AfterFunc(ctx, p.pool.wake)()
	p.pool.mu.Lock()
	for _, w := range all {
		q.push(q.add(evaluations, "", 0, w))
	}
	p.pool.changed.Broadcast()
	p.pool.mu.Unlock()
	return p.pool.awaitEvaluations(q)
}

// awaitEvaluations waits until the evaluations of a run have ended, and returns the errors
// of its jobs.
func (p *pool) awaitEvaluations(q *queue) error {
	p.await(func() bool {
		isOver := q.ctx[evaluations].Err() != nil || q.pendingEvaluations() == 0
		return isOver && !q.hasWorker(evaluations)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(q.errs...)
}

// await waits until a condition holds, which is checked with the lock after each change.
func (p *pool) await(holds func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !holds() {
		p.changed.Wait()
	}
}

// remove takes the jobs of a run that has ended out of the pool.
func (p *pool) remove(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.waiting {
		p.waiting[l] = slices.DeleteFunc(p.waiting[l], func(j *job) bool { return j.queue == q })
	}
	p.queues = slices.DeleteFunc(p.queues, func(other *queue) bool { return other == q })
}

// hasWorker reports whether a job of a lane runs or waits for its retry. The caller holds
// the lock.
func (q *queue) hasWorker(l lane) bool {
	return slices.ContainsFunc(q.jobs[l], func(j *job) bool { return j.hasWorker })
}
