package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/minibench/mini/trajectories"
)

// queue hands the tasks of a run to its workers, in order, as long as nobody has
// paused it. Its lock is held while it tells the log of something, and the log
// must not come back.
type queue struct {
	log   *Log
	spent func() bool // nothing is left to pay with

	mu      sync.Mutex
	changed sync.Cond // of mu
	jobs    []*job    // all that were asked for
	waiting []*job    // of them, the next first
	held    int       // that workers have
	// paused and draining are as somebody wishes; over says that no worker takes
	// anything more.
	paused, draining, over bool
	total, done, skipped   int // of this run, as those who watch count them
}

// place is where a task is.
type place int

const (
	settled place = iota // it has ended, or had its result before
	queued               // it waits for a worker
	working              // an attempt goes on
	resting              // it failed, and its worker waits before it tries again
	dropped              // somebody killed it before it came to an attempt, or to another
)

// job is a task and what becomes of it. The queue's lock guards it, but for tries
// and told, which are of whoever works on it.
type job struct {
	task
	who    string
	at     place
	held   bool // a worker has it, also when its attempt is over
	killed bool
	again  bool // it is to go to the end of the queue
	class  trajectories.Class
	cancel context.CancelCauseFunc // of its attempts, while a worker has it
	tries  int
	told   int // the attempt whose submission was told of
}

// stop ends what the task's worker does.
func (j *job) stop(why error) {
	if j.cancel != nil {
		j.cancel(why)
	}
}

// newQueue makes the queue of a run: what needs no work is only known.
func newQueue(log *Log, spent func() bool, all, todo []task) *queue {
	q := &queue{log: log, spent: spent, total: len(todo), skipped: len(all) - len(todo)}
	q.changed.L = &q.mu
	next := 0
	for _, t := range all {
		j := &job{task: t, who: t.event(Event{}).Who()}
		q.jobs = append(q.jobs, j)
		if next < len(todo) && todo[next].ID == t.ID && todo[next].sample == t.sample {
			next++
			q.append(j)
		}
	}
	return q
}

func (q *queue) append(j *job) {
	j.at, j.again, j.killed = queued, false, false
	q.waiting = append(q.waiting, j)
}

// forget takes a task out of the queue.
func (q *queue) forget(j *job) {
	j.at = dropped
	q.waiting = slices.DeleteFunc(q.waiting, func(other *job) bool { return other == j })
}

// next waits for a task that may be begun, and hands it over with a context of its
// own. nil says that there is none any more: the run is stopped, or all is done and
// nobody is left who could be asked to begin again.
func (q *queue) next(ctx context.Context) (*job, context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		switch {
		case q.over || ctx.Err() != nil || q.spent():
			return nil, nil
		case len(q.waiting) > 0 && q.open():
			j := q.waiting[0]
			q.waiting = slices.Delete(q.waiting, 0, 1)
			j.at, j.held = working, true
			q.held++
			mine, cancel := context.WithCancelCause(ctx)
			j.cancel = cancel
			return j, mine
		case q.held == 0 && (q.draining || len(q.waiting) == 0):
			q.finish()
			return nil, nil
		}
		q.changed.Wait()
	}
}

// open says whether something may be started. The lock is held.
func (q *queue) open() bool { return !q.paused && !q.draining }

// finish lets no worker take anything more, and nobody ask for it. The lock is held.
func (q *queue) finish() {
	q.over = true
	q.changed.Broadcast()
}

// finished is how an attempt at a task ended: it is told, in one piece with what
// somebody wants to become of it. again says that it may be tried again, and the
// result whether its worker is to do that.
func (q *queue) finished(j *job, n int, out trajectories.Outcome, again bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	again = again && !j.killed && !q.draining || j.again
	q.log.Emit(j.event(Event{Type: AttemptFinished, Attempt: n, Outcome: &out, Again: again}))
	switch {
	case !again:
		j.at, j.class = settled, out.Class
		q.done++
	case !j.again:
		j.at = resting
	}
	return again && !j.again
}

// goesOn says, when a worker has waited to try a task again, whether it may. If not,
// the task is the next once the pause is over.
func (q *queue) goesOn(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.at != resting || j.again || !q.open() {
		return false
	}
	j.at = working
	return true
}

// giveBack ends a worker's time with a task.
func (q *queue) giveBack(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j.cancel(nil)
	j.cancel, j.held = nil, false
	q.held--
	switch {
	case j.again:
		j.anew, j.tries = true, 0
		q.append(j)
	case j.at == resting:
		j.at = queued
		q.waiting = slices.Insert(q.waiting, 0, j)
	case j.at == working: // the folder cannot be written, and the run ends
		j.at = dropped
	}
	q.changed.Broadcast()
}

// wake has the workers look again.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// close ends the queue with its run, and says whether it was drained.
func (q *queue) close() (drained bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finish()
	return q.draining
}

func (q *queue) standing() Standing {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Standing{
		Paused: q.paused, Draining: q.draining, Total: q.total, Done: q.done, Skipped: q.skipped,
		Working: []string{}, Waiting: []string{}, Ended: []string{}, Classes: map[trajectories.Class]int{},
	}
	for _, j := range q.jobs {
		switch {
		case j.held && j.at != settled:
			s.Working = append(s.Working, j.who)
		case j.at == dropped:
			s.Dropped = append(s.Dropped, j.who)
		case j.at == settled:
			s.Ended = append(s.Ended, j.who)
		}
		if j.class != "" {
			s.Classes[j.class]++
		}
	}
	for _, j := range q.waiting {
		s.Waiting = append(s.Waiting, j.who)
	}
	return s
}
