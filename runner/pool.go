package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Work is what a job of a pool does: a task makes attempts at an instance, an
// evaluation runs the tests of a patch. One goroutine at a time calls Try and Finish.
type Work interface {
	// Key names what the work produces. Of the evaluations of a run with the same
	// key, one runs at a time, so that the others find its verdict. Those without a
	// key do not wait.
	Key() string
	// Try makes one try. fresh is set after a Requeue: the work starts over. An
	// error stops all jobs, because later results would be lost.
	Try(ctx context.Context, fresh bool) (End, error)
	// Finish keeps the result of a try. A positive wait announces a retry after that
	// time. Otherwise more reports whether the work has another part, which has
	// tries of its own. An error is like that of Try.
	Finish(wait time.Duration) (more bool, err error)
}

// End describes how a try ended.
type End struct {
	// Temporary reports that a retry may succeed.
	Temporary bool
	// Disrupted reports that the cluster took the sandbox away. Such a try counts only
	// after Retries.MaxDisruptions others.
	Disrupted bool
	Class     trajectories.Class // of an attempt
	// Report emits the end. It is called with the pool's lock, so that the events of
	// ends and of requests are in order. It may be nil.
	Report func(willRetry bool)
}

// Retries limits the tries of a job.
type Retries struct {
	MaxTries       int // at least 1
	MaxDisruptions int // see End.Disrupted
}

// retryDelay is the wait before the first retry. The wait before retry n is n times
// as long.
const retryDelay = time.Second

// lane is a kind of jobs. Each has workers of its own.
type lane int

const (
	attempts lane = iota
	evaluations
)

// pool runs the jobs of one or more runs.
type pool struct {
	workers      [2]sync.WaitGroup
	mu           sync.Mutex // guards what follows, the queues and their jobs
	changed      sync.Cond
	queues       []*queue // one for each run
	waiting      [2][]*job
	accepting    bool // runs may be added
	attemptsOver bool // no more evaluations are added
}

// queue has the jobs of one run. It emits events while it holds the pool's lock, so
// observers of the log must not call it.
type queue struct {
	pool          *pool
	stop          context.CancelCauseFunc // ends all jobs, at an error of one
	errs          []error
	log           *EventLog
	retries       Retries
	ctx           [2]context.Context // of the jobs in each lane
	isBudgetSpent func() bool

	jobs [2][]*job
	keys map[string]bool // of running evaluations
	// Requests set paused and draining. A closed queue starts no more attempts.
	paused, draining, closed bool
}

// jobState is the state of a job.
type jobState int

const (
	stateEnded   jobState = iota // ended in this run, or had a result before it
	stateQueued                  // waits for a worker
	stateRunning                 // a try runs
	stateBackoff                 // a try failed; the worker waits before a retry
	stateDropped                 // killed before a try, or cut off by an error of the run
)

// job is work with its state. The pool's lock guards the fields.
type job struct {
	queue      *queue
	lane       lane
	instance   string
	repetition int // 0: there is only one
	work       Work
	next       Work // takes the place of work when the worker releases the job

	state     jobState
	hasWorker bool // also true while the worker waits between two tries
	killed    bool
	requeued  bool // moves to the end of the queue when its worker releases it
	fresh     bool // the next try starts over
	class     trajectories.Class
	cancel    context.CancelCauseFunc // cancels the tries; nil without a worker
	tries     int
	// disruptions is the number of disrupted tries that are not in tries.
	disruptions int
}

// id returns the task's ID for the user: that of the instance, or "id#2".
func (j *job) id() string { return j.event(Event{}).TaskID() }

// event returns e with the instance and repetition of the job.
func (j *job) event(e Event) Event {
	e.Instance, e.Repetition = j.instance, j.repetition
	return e
}

// interrupt cancels the try that runs.
func (j *job) interrupt(cause error) {
	if j.cancel != nil {
		j.cancel(cause)
	}
}

// RunEvaluations runs evaluations without attempts, until all have ended or ctx is
// done.
func RunEvaluations(ctx context.Context, workers int, retries Retries, log *EventLog, all []Work) error {
	p := NewPool(0, min(workers, len(all)), Budget{}) //nolint:contextcheck // each job has the context of its run
	defer p.Close()
	return p.RunEvaluations(ctx, retries, log, all)
}

func newPool() *pool {
	p := &pool{}
	p.changed.L = &p.mu
	return p
}

// newQueue adds a run to the pool. stop ends ctx.
func (p *pool) newQueue(ctx context.Context, stop context.CancelCauseFunc, log *EventLog, retries Retries) *queue {
	q := &queue{pool: p, stop: stop, log: log, retries: retries, ctx: [2]context.Context{ctx, ctx}, keys: map[string]bool{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = append(p.queues, q)
	return q
}

// add adds a job that has ended.
func (q *queue) add(l lane, instance string, repetition int, w Work) *job {
	j := &job{queue: q, lane: l, instance: instance, repetition: repetition, work: w}
	q.jobs[l] = append(q.jobs[l], j)
	return j
}

// push moves a job to the end of its lane.
func (q *queue) push(j *job) {
	j.state, j.requeued, j.killed, j.tries, j.disruptions = stateQueued, false, false, 0, 0
	q.pool.waiting[j.lane] = append(q.pool.waiting[j.lane], j)
}

// drop removes a job that waits for a worker.
func (q *queue) drop(j *job) {
	j.state = stateDropped
	q.pool.waiting[j.lane] = slices.DeleteFunc(q.pool.waiting[j.lane], func(other *job) bool { return other == j })
}

// evaluate adds the evaluation of a submission of a task. It takes the place of an
// earlier one that has not started, and waits for one that runs.
func (q *queue) evaluate(task *job, w Work) {
	q.pool.mu.Lock()
	defer q.pool.mu.Unlock()
	j := q.evaluation(task)
	if j == nil {
		j = q.add(evaluations, task.instance, task.repetition, w)
	}
	switch {
	case j.hasWorker && (j.work != w || j.killed):
		j.next = w
	case !j.hasWorker:
		if j.work = w; j.state != stateQueued {
			q.push(j)
		}
	}
	q.pool.changed.Broadcast()
}

// evaluation returns the evaluation of a task, or nil. The caller holds the lock.
func (q *queue) evaluation(task *job) *job {
	i := slices.IndexFunc(q.jobs[evaluations], func(j *job) bool { return j.instance == task.instance && j.repetition == task.repetition })
	if i < 0 {
		return nil
	}
	return q.jobs[evaluations][i]
}

// start starts the workers of a lane.
func (p *pool) start(l lane, n int) {
	for range n {
		p.workers[l].Add(1)
		go p.work(l)
	}
}

// wait waits for the workers of a lane and returns the errors of all jobs.
func (p *pool) wait(l lane) (err error) {
	p.workers[l].Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		err = errors.Join(err, errors.Join(q.errs...))
	}
	return err
}

// wake makes waiting workers check the state again.
func (p *pool) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// work runs the jobs of a lane until no more will start.
func (p *pool) work(l lane) {
	defer p.workers[l].Done()
	for {
		j, ctx, fresh := p.next(l)
		if j == nil {
			return
		}
		err := p.run(ctx, j, fresh)
		p.release(j, err)
		if err != nil {
			j.queue.stop(agent.ErrInterrupted)
		}
	}
}

// next waits for a job that may start and assigns it to the calling worker. It
// returns nil if no more jobs of the lane will start.
func (p *pool) next(l lane) (next *job, jobCtx context.Context, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.isOver(l) {
		if i := slices.IndexFunc(p.waiting[l], (*job).mayStart); i >= 0 {
			j := p.waiting[l][i]
			p.waiting[l] = slices.Delete(p.waiting[l], i, i+1)
			if key := j.work.Key(); key != "" {
				j.queue.keys[key] = true
			}
			ctx, cancel := context.WithCancelCause(j.queue.ctx[l])
			j.state, j.hasWorker, j.cancel = stateRunning, true, cancel
			fresh, j.fresh = j.fresh, false
			return j, ctx, fresh
		}
		p.changed.Wait()
	}
	return nil, nil, false
}

// isOver reports whether no more jobs of a lane will start. The caller holds the lock.
func (p *pool) isOver(l lane) bool {
	if p.accepting {
		return false
	}
	if l == evaluations {
		return p.attemptsOver && !slices.ContainsFunc(p.waiting[l], func(j *job) bool { return j.queue.ctx[l].Err() == nil })
	}
	over := true
	for _, q := range p.queues {
		over = !q.isOpen() && over
	}
	return over
}

// isOpen reports whether more attempts may start, now or later. They may not if the
// run was stopped or drained, the budget is spent, or all tasks have ended. The caller
// holds the lock.
func (q *queue) isOpen() bool {
	isActive := func(j *job) bool { return j.hasWorker || j.state == stateQueued && !q.draining }
	if !slices.ContainsFunc(q.jobs[attempts], isActive) {
		q.close()
	}
	return !q.closed && q.ctx[attempts].Err() == nil && !q.isBudgetSpent()
}

// close prevents the start of attempts. The caller holds the lock.
func (q *queue) close() {
	if !q.closed {
		q.closed = true
		q.pool.changed.Broadcast()
	}
}

// isHeld reports whether a request prevents tries of the job. The caller holds the lock.
func (j *job) isHeld() bool {
	return j.queue.paused || j.lane == attempts && j.queue.draining
}

// mayStart reports whether a worker may start the job. The caller holds the lock.
func (j *job) mayStart() bool {
	q := j.queue
	if j.isHeld() || q.ctx[j.lane].Err() != nil {
		return false
	}
	if j.lane == evaluations {
		return !q.keys[j.work.Key()]
	}
	return !q.closed && !q.isBudgetSpent()
}

// run makes tries until the work is done, its failure is permanent, its tries are
// used up, or a request stops it.
func (p *pool) run(ctx context.Context, j *job, fresh bool) error {
	if j.lane == attempts {
		defer j.queue.log.Emit(j.event(Event{Type: PhaseChanged, Phase: PhaseReleased}))
	}
	for {
		end, err := j.work.Try(ctx, fresh)
		if err != nil {
			return err
		}
		fresh = false
		wait := p.endTry(ctx, j, end)
		more, err := j.work.Finish(wait)
		switch {
		case err != nil:
			return err
		case wait > 0:
			more = sleep(ctx, wait) && p.mayRetry(j)
		case more:
			p.mu.Lock()
			j.tries, j.disruptions = 0, 0
			p.mu.Unlock()
		}
		if !more || ctx.Err() != nil {
			return nil
		}
	}
}

// endTry reports the end of a try, and returns the wait before the retry or 0 if the
// worker does not retry. Requests to kill, drain or requeue override what the end of the
// try allows.
func (p *pool) endTry(ctx context.Context, j *job, end End) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := j.queue
	if end.Disrupted && j.disruptions < q.retries.MaxDisruptions {
		j.disruptions++
	} else {
		j.tries++
	}
	isStopped := j.killed || ctx.Err() != nil || j.lane == attempts && q.draining
	retry := end.Temporary && !isStopped && j.tries < q.retries.MaxTries
	if end.Report != nil {
		end.Report(retry || j.requeued)
	}
	switch {
	case j.requeued:
	case retry:
		j.state = stateBackoff
		return time.Duration(j.tries+j.disruptions) * retryDelay
	case j.lane == attempts:
		j.state, j.class = stateEnded, end.Class
	}
	return 0
}

// mayRetry reports whether a worker may retry its job after the wait. If the run is
// paused or drained, the worker may not, and release moves the job to the front of
// its lane.
func (p *pool) mayRetry(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state != stateBackoff || j.requeued || j.isHeld() {
		return false
	}
	j.state = stateRunning
	return true
}

// release ends the assignment of a job to its worker. err is the error of the job.
func (p *pool) release(j *job, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		j.queue.errs = append(j.queue.errs, err)
	}
	delete(j.queue.keys, j.work.Key())
	j.cancel(nil)
	j.cancel, j.hasWorker = nil, false
	switch {
	case j.next != nil:
		j.work, j.next = j.next, nil
		j.queue.push(j)
	case j.requeued:
		j.fresh = true
		j.queue.push(j)
	case j.state == stateBackoff:
		j.state = stateQueued
		p.waiting[j.lane] = slices.Insert(p.waiting[j.lane], 0, j)
	case j.state == stateRunning && j.lane == evaluations:
		j.state = stateEnded
	case j.state == stateRunning: // the run ends because its folder cannot be written
		j.state = stateDropped
	}
	p.changed.Broadcast()
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

// pendingEvaluations returns the number of evaluations that have not ended.
func (q *queue) pendingEvaluations() (n int) {
	for _, j := range q.jobs[evaluations] {
		if j.hasWorker || j.state == stateQueued {
			n++
		}
	}
	return n
}

// count returns the number of tasks of this run, how many of them are done, and how many
// other tasks had a result before. Killed tasks are in none of these. The caller holds the
// lock.
func (q *queue) count() (total, done, skipped int) {
	for _, j := range q.jobs[attempts] {
		switch {
		case j.requeued || j.state != stateEnded && j.state != stateDropped:
			total++
		case j.state == stateEnded && j.class != "":
			total, done = total+1, done+1
		case j.state == stateEnded:
			skipped++
		}
	}
	return total, done, skipped
}

// status returns the state of the run's attempts, or false if those of all runs have
// ended.
func (q *queue) status() (s QueueStatus, ok bool) {
	q.pool.mu.Lock()
	defer q.pool.mu.Unlock()
	s = QueueStatus{
		Paused: q.paused, Draining: q.draining,
		Working: []string{}, Waiting: []string{}, Ended: []string{}, Classes: map[trajectories.Class]int{},
	}
	s.Total, s.Done, s.Skipped = q.count()
	for _, j := range q.jobs[attempts] {
		switch {
		case j.hasWorker && j.state != stateEnded:
			s.Working = append(s.Working, j.id())
		case j.state == stateDropped:
			s.Dropped = append(s.Dropped, j.id())
		case j.state == stateEnded:
			s.Ended = append(s.Ended, j.id())
		}
		if j.class != "" {
			s.Classes[j.class]++
		}
	}
	for _, j := range q.pool.waiting[attempts] {
		if j.queue == q {
			s.Waiting = append(s.Waiting, j.id())
		}
	}
	return s, !q.pool.attemptsOver
}
