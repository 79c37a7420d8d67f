package runner

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Action is an action on a running batch.
type Action string

// Actions on a running batch.
const (
	// Pause prevents the start of attempts, evaluations and retries; those that run
	// continue.
	Pause Action = "pause"
	// Resume ends a pause, or a drain while attempts are still running.
	Resume Action = "resume"
	// Drain prevents the start of attempts and ends the run when the running
	// attempts have ended and are evaluated. Queued tasks stay pending.
	Drain Action = "drain"
	// Kill ends one task: its attempt is interrupted, or never started, and its
	// evaluation ends without a verdict. This run does not retry it.
	Kill Action = "kill"
	// Requeue starts one task again, at the end of the queue: a running attempt
	// is interrupted first, and an ended task gets a new attempt. Earlier
	// attempts are not deleted.
	Requeue Action = "requeue"
)

// ControlRequest is a request for an action.
type ControlRequest struct {
	Action Action
	// TaskID is the task of a Kill or Requeue: an instance ID, or "ID#2" for one
	// of several repetitions. The ID alone means all of them.
	TaskID string
	// Source is the origin of the request for the event log, such as SourceCtl.
	Source string
}

// Sources of requests.
const (
	SourceLiveView = "view" // the live view
	SourceCtl      = "ctl"  // mini ctl
)

// SourceName returns the name of a source for the user.
func SourceName(source string) string {
	names := map[string]string{SourceLiveView: "live view", SourceCtl: "mini ctl"}
	return cmp.Or(names[source], source)
}

// Errors of requests.
var (
	ErrNotRunning   = errors.New("the run has ended or has not started")
	ErrAlreadyEnded = errors.New("has ended")
)

// UnknownTaskError reports that a run has no such task.
type UnknownTaskError struct {
	TaskID string
	// Known are the tasks of the run.
	Known []string
}

func (e *UnknownTaskError) Error() string {
	return fmt.Sprintf("the run has no instance %.80q", e.TaskID)
}

// Control accepts requests for one Batch. The zero value is ready to use. Its
// methods are safe for concurrent use.
type Control struct {
	queue atomic.Pointer[queue] // of the current run; nil if none is running
}

// Do executes a request and describes the effect in one sentence.
func (c *Control) Do(req ControlRequest) (effect string, err error) {
	q := c.queue.Load()
	if q == nil {
		return "", ErrNotRunning
	}
	return q.apply(req)
}

// QueueStatus returns the state of the queue, or false if no attempts are in progress.
func (c *Control) QueueStatus() (QueueStatus, bool) {
	q := c.queue.Load()
	if q == nil {
		return QueueStatus{}, false
	}
	return q.status()
}

// attach sets the queue of the current run; nil means that no run is in progress.
func (c *Control) attach(q *queue) {
	if c != nil {
		c.queue.Store(q)
	}
}

// QueueStatus is the progress of a run.
type QueueStatus struct {
	Paused   bool `json:"paused,omitempty"`
	Draining bool `json:"draining,omitempty"`
	Total    int  `json:"total"`   // tasks of this run
	Done     int  `json:"done"`    // of Total
	Skipped  int  `json:"skipped"` // had a result before this run; not in Total
	// Working are the tasks that have a worker. Waiting are the queued tasks, in
	// order.
	Working []string `json:"working"`
	Waiting []string `json:"waiting"`
	// Ended are the tasks that ended in this run or had a result before it.
	Ended []string `json:"ended"`
	// Dropped are the tasks that were killed before an attempt or a retry.
	Dropped []string `json:"dropped,omitempty"`
	// Classes counts the outcomes of the tasks done.
	Classes map[trajectories.Class]int `json:"classes"`
}

// apply executes a request and describes the effect. It emits events while holding
// the lock, so that the events are in order.
func (q *queue) apply(req ControlRequest) (string, error) {
	q.pool.mu.Lock()
	defer q.pool.mu.Unlock()
	concernsEvaluations := q.pendingEvaluations() > 0 && req.Action != Drain && req.Action != Requeue
	if q.closed && !concernsEvaluations {
		return "", ErrNotRunning
	}
	defer q.pool.changed.Broadcast()
	what := "attempts"
	if len(q.jobs[evaluations]) > 0 {
		what = "attempts and evaluations"
	}
	switch req.Action {
	case Pause:
		if q.paused {
			return "already paused", nil
		}
		q.paused = true
		return q.report(req, nil, "paused: running "+what+" continue, no new ones start"), nil
	case Resume:
		if !q.paused && !q.draining {
			return "not paused", nil
		}
		q.paused, q.draining = false, false
		return q.report(req, nil, "resumed"), nil
	case Drain:
		if q.draining {
			return "already draining", nil
		}
		q.draining = true
		return q.report(req, nil, "draining: running attempts continue, then the run ends"), nil
	case Kill:
		return q.forEach(req, q.kill)
	case Requeue:
		return q.forEach(req, q.requeue)
	}
	return "", fmt.Errorf("unknown action %.40q", req.Action)
}

// forEach applies f to the task of a request, or to all repetitions of its
// instance. It returns an error if there is no such task or if f fails for all
// of them.
func (q *queue) forEach(req ControlRequest, f func(ControlRequest, *job) (string, error)) (string, error) {
	jobs := q.find(req.TaskID)
	if len(jobs) == 0 {
		unknown := &UnknownTaskError{TaskID: req.TaskID}
		for _, j := range q.jobs[attempts] {
			unknown.Known = append(unknown.Known, j.id())
		}
		return "", unknown
	}
	var effects []string
	var lastErr error
	for _, j := range jobs {
		text, err := f(req, j)
		if err != nil {
			lastErr = fmt.Errorf("%s %w", j.id(), err)
			continue
		}
		effects = append(effects, j.id()+" "+text)
	}
	if len(effects) == 0 {
		return "", lastErr
	}
	return strings.Join(effects, "\n"), nil
}

func (q *queue) kill(req ControlRequest, j *job) (string, error) {
	cause, evaluation := &stopError{"killed", req.Source}, q.evaluation(j)
	isEvaluated := evaluation != nil && q.killEvaluation(evaluation, cause)
	switch {
	case j.state == stateQueued:
		q.drop(j)
		return q.report(req, j, "is killed: it will not start in this run"), nil
	case j.state == stateBackoff:
		j.state = stateDropped
		j.interrupt(cause)
		return q.report(req, j, "is killed: it will not be retried in this run"), nil
	case j.state == stateRunning && !j.killed:
		j.killed, j.requeued = true, false
		j.interrupt(cause)
		return q.report(req, j, "is killed: its attempt ends, and its work is kept"), nil
	case j.requeued: // ended, but requeued
		j.state, j.requeued = stateDropped, false
		return q.report(req, j, "is killed: it will not start in this run"), nil
	case isEvaluated:
		return q.report(req, j, "is killed: its evaluation ends without a verdict"), nil
	case j.state == stateRunning:
		return "is already ending", nil
	case j.state == stateDropped:
		return "was already killed", nil
	}
	return "", ErrAlreadyEnded
}

// killEvaluation drops or ends an evaluation. It returns false if that has ended.
func (q *queue) killEvaluation(j *job, cause error) bool {
	switch {
	case j.state == stateQueued:
		q.drop(j)
		return true
	case !j.hasWorker || j.killed && j.next == nil:
		return false
	case j.state == stateBackoff:
		j.state = stateDropped
	}
	j.killed, j.next = true, nil
	j.interrupt(cause)
	return true
}

func (q *queue) requeue(req ControlRequest, j *job) (string, error) {
	if j.requeued {
		return "is already requeued", nil
	}
	switch j.state {
	case stateQueued:
		q.drop(j)
		q.push(j)
		return q.report(req, j, "is moved to the end of the queue"+q.drainNote()), nil
	case stateRunning, stateBackoff:
		j.requeued, j.killed = true, false
		j.interrupt(&stopError{"requeued", req.Source})
		return q.report(req, j, "is stopped and requeued"+q.drainNote()), nil
	case stateDropped:
		if j.hasWorker {
			j.requeued = true
		} else {
			q.push(j)
		}
		return q.report(req, j, "is queued again"+q.drainNote()), nil
	}
	j.fresh = true
	if j.requeued = j.hasWorker; !j.hasWorker {
		q.push(j)
	}
	effect := q.report(req, j, "is requeued; its earlier attempts are kept"+q.drainNote())
	j.class = ""
	return effect, nil
}

// drainNote notes that a drained run does not start queued tasks. The caller holds
// the lock.
func (q *queue) drainNote() string {
	if q.draining {
		return "; the run is draining and starts it only after a resume"
	}
	return ""
}

// report emits an event with the effect of a request and returns the effect.
func (q *queue) report(req ControlRequest, j *job, text string) string {
	e := Event{Type: ControlApplied, Action: req.Action, Source: req.Source, Text: text}
	e.Total, _, _ = q.count()
	if j != nil {
		e = j.event(e)
		if req.Action == Requeue {
			e.Class = j.class
		}
	}
	q.log.Emit(e)
	return text
}

// find returns the tasks with an ID: one, or all repetitions of an instance.
func (q *queue) find(taskID string) []*job {
	var repetitions []*job
	for _, j := range q.jobs[attempts] {
		if j.id() == taskID {
			return []*job{j}
		}
		if j.instance == taskID {
			repetitions = append(repetitions, j)
		}
	}
	return repetitions
}

// stopError is the cancellation cause of an attempt that a request interrupted.
type stopError struct{ action, source string }

func (s *stopError) Error() string {
	if s.source == "" {
		return s.action
	}
	return s.action + " (" + SourceName(s.source) + ")"
}

// Unwrap returns agent.ErrInterrupted, so that the agent saves the working diff.
func (s *stopError) Unwrap() error { return agent.ErrInterrupted }
