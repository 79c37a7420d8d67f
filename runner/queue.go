package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/minibench/mini/trajectories"
)

// queueLock guards the queues of all batches that run together.
type queueLock struct {
	mu      sync.Mutex
	changed sync.Cond
}

// queue assigns the tasks of a run to workers in order. It emits events while
// holding its lock, so observers of the log must not call it.
type queue struct {
	log           *EventLog
	isBudgetSpent func() bool // reports whether the budget is spent
	*queueLock

	jobs     []*job // all tasks
	waiting  []*job // tasks waiting for a worker, next first
	assigned int    // number of tasks that have a worker
	// Requests set paused and draining. A closed queue assigns no more tasks.
	paused, draining, closed bool
	total, done, skipped     int // numbers of tasks of this run, as shown to the user
}

// jobState is the state of a task.
type jobState int

const (
	stateEnded   jobState = iota // ended in this run, or had a result before it
	stateQueued                  // waits for a worker
	stateRunning                 // has a running attempt
	stateBackoff                 // has a failed attempt; its worker waits before a retry
	stateDropped                 // killed before an attempt or a retry, or cut off by an error of the run
)

// job is a task with its state. The queue's lock guards all fields except tries,
// disruptions and reported, which only the task's worker uses.
type job struct {
	task
	taskID    string
	index     int // in queue.jobs
	state     jobState
	hasWorker bool // also true while the worker waits between two attempts
	killed    bool
	requeued  bool // moves to the end of the queue when its worker releases it
	class     trajectories.Class
	cancel    context.CancelCauseFunc // cancels the task's attempts; nil without a worker
	tries     int
	// disruptions is the number of attempts that ended with env.SandboxDisrupted and are
	// not in tries.
	disruptions int
	reported    int // the attempt last passed to Batch.OnSubmission
}

// stop interrupts the task's attempt.
func (j *job) stop(cause error) {
	if j.cancel != nil {
		j.cancel(cause)
	}
}

// newQueue returns the queue of a run. Tasks in all that are not in todo have a
// result. todo has the same order as all.
func newQueue(lock *queueLock, log *EventLog, isBudgetSpent func() bool, all, todo []task) *queue {
	q := &queue{queueLock: lock, log: log, isBudgetSpent: isBudgetSpent, total: len(todo), skipped: len(all) - len(todo)}
	q.changed.L = &q.mu
	next := 0
	for i, t := range all {
		j := &job{task: t, taskID: t.event(Event{}).TaskID(), index: i}
		q.jobs = append(q.jobs, j)
		if next < len(todo) && todo[next].ID == t.ID && todo[next].repetition == t.repetition {
			next++
			q.append(j)
		}
	}
	return q
}

func (q *queue) append(j *job) {
	j.state, j.requeued, j.killed = stateQueued, false, false
	q.waiting = append(q.waiting, j)
}

// remove drops a task that waits for a worker.
func (q *queue) remove(j *job) {
	j.state = stateDropped
	q.waiting = slices.DeleteFunc(q.waiting, func(other *job) bool { return other == j })
}

// nextTask waits for a task that may start in one of the batches, assigns it to the
// calling worker and returns it with its batch and its context. It returns nil if the
// worker must stop, because all queues are closed. It takes the batches in turns: the
// first task of each batch, then the second of each.
func nextTask(lock *queueLock, batches []*Batch) (next *Batch, j *job, jobCtx context.Context) {
	lock.mu.Lock()
	defer lock.mu.Unlock()
	for {
		open := false
		next = nil
		for _, b := range batches {
			q := b.queue
			if !q.isOpen(b.ctx) {
				continue
			}
			open = true
			if len(q.waiting) > 0 && q.canStart() && (next == nil || q.waiting[0].index < next.queue.waiting[0].index) {
				next = b
			}
		}
		switch {
		case next != nil:
			j, jobCtx = next.queue.assign(next.ctx)
			return next, j, jobCtx
		case !open:
			return nil, nil, nil
		}
		lock.changed.Wait()
	}
}

// isOpen reports whether more tasks may start, now or later. They may not if the run
// was stopped or drained, the budget is spent, or all tasks have ended. The caller
// holds the lock.
func (q *queue) isOpen(ctx context.Context) bool {
	if q.assigned == 0 && (q.draining || len(q.waiting) == 0) {
		q.closeLocked()
	}
	return !q.closed && ctx.Err() == nil && !q.isBudgetSpent()
}

// assign assigns the first waiting task to a worker. The caller holds the lock.
func (q *queue) assign(ctx context.Context) (*job, context.Context) {
	j := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	j.state, j.hasWorker = stateRunning, true
	q.assigned++
	jobCtx, cancel := context.WithCancelCause(ctx)
	j.cancel = cancel
	return j, jobCtx
}

// canStart reports whether tasks may start. The caller holds the lock.
func (q *queue) canStart() bool { return !q.paused && !q.draining }

// closeLocked stops the assignment of tasks. The caller holds the lock.
func (q *queue) closeLocked() {
	if !q.closed {
		q.closed = true
		q.changed.Broadcast()
	}
}

// attemptFinished emits the end of an attempt and reports whether the worker retries
// the task. retry is the worker's own decision; requests to kill, drain or requeue
// override it.
func (q *queue) attemptFinished(j *job, n int, out trajectories.Outcome, retry bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	retry = retry && !j.killed && !q.draining || j.requeued
	q.log.Emit(j.event(Event{Type: AttemptFinished, Attempt: n, Outcome: &out, WillRetry: retry}))
	switch {
	case !retry:
		j.state, j.class = stateEnded, out.Class
		q.done++
	case !j.requeued:
		j.state = stateBackoff
	}
	return retry && !j.requeued
}

// mayRetry reports whether a worker may retry its task after the wait. If the run
// is paused or drained, the worker may not, and release moves the task to the
// front of the queue.
func (q *queue) mayRetry(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.state != stateBackoff || j.requeued || !q.canStart() {
		return false
	}
	j.state = stateRunning
	return true
}

// release ends the assignment of a task to its worker.
func (q *queue) release(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j.cancel(nil)
	j.cancel, j.hasWorker = nil, false
	q.assigned--
	switch {
	case j.requeued:
		j.forceNew, j.tries, j.disruptions = true, 0, 0
		q.append(j)
	case j.state == stateBackoff:
		j.state = stateQueued
		q.waiting = slices.Insert(q.waiting, 0, j)
	case j.state == stateRunning: // the run ends because its folder cannot be written
		j.state = stateDropped
	}
	q.changed.Broadcast()
}

// wake makes waiting workers check the state of the queue again.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// close closes the queue at the end of the run and reports whether it was drained.
func (q *queue) close() (drained bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeLocked()
	return q.draining
}

func (q *queue) status() QueueStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := QueueStatus{
		Paused: q.paused, Draining: q.draining, Total: q.total, Done: q.done, Skipped: q.skipped,
		Working: []string{}, Waiting: []string{}, Ended: []string{}, Classes: map[trajectories.Class]int{},
	}
	for _, j := range q.jobs {
		switch {
		case j.hasWorker && j.state != stateEnded:
			s.Working = append(s.Working, j.taskID)
		case j.state == stateDropped:
			s.Dropped = append(s.Dropped, j.taskID)
		case j.state == stateEnded:
			s.Ended = append(s.Ended, j.taskID)
		}
		if j.class != "" {
			s.Classes[j.class]++
		}
	}
	for _, j := range q.waiting {
		s.Waiting = append(s.Waiting, j.taskID)
	}
	return s
}
