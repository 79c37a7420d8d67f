package runner

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Action is what a person can have a run do while it goes on.
type Action string

// What a run does when it is told so.
const (
	// Pause starts nothing more, no further try either; what runs goes on.
	Pause Action = "pause"
	// Resume ends a pause, and a drain while something still runs.
	Resume Action = "resume"
	// Drain ends the run when what runs has ended. What is left stays pending.
	Drain Action = "drain"
	// Kill ends one instance: its attempt in good order, or before there is one.
	// This run does not try it again.
	Kill Action = "kill"
	// Requeue puts one instance at the end of the queue, where it begins anew:
	// what runs is ended first, and what has a result is done again. All attempts
	// stay.
	Requeue Action = "requeue"
)

// Order is an action that somebody asks for.
type Order struct {
	Action Action
	// Who is the instance of a Kill or Requeue, or one sample of it: "id#2".
	// The id alone means all of its samples.
	Who string
	// By says who asks, for those who read of it.
	By string
}

// Who gives orders.
const (
	ByView = "view" // the live view
	ByCtl  = "ctl"  // mini ctl
)

// Whose names for people who gave an order.
func Whose(by string) string {
	switch by {
	case ByView:
		return "live view"
	case ByCtl:
		return "mini ctl"
	}
	return by
}

// Why an order cannot be followed.
var (
	ErrNotRunning = errors.New("the run is over, or has not begun")
	ErrEnded      = errors.New("has ended")
)

// UnknownError says that a run has no such instance.
type UnknownError struct {
	Who string
	// Known are those that it has.
	Known []string
}

func (e *UnknownError) Error() string { return fmt.Sprintf("the run has no instance %.80q", e.Who) }

// Control is where orders to a run come in. The zero value is ready; it belongs to
// one Batch, and its methods are safe for concurrent use.
type Control struct {
	queue atomic.Pointer[queue] // of the run that goes on; nil while none does
}

// Do follows an order and says in a sentence what comes of it.
func (c *Control) Do(o Order) (said string, err error) {
	q := c.queue.Load()
	if q == nil {
		return "", ErrNotRunning
	}
	return q.do(o)
}

// Standing says how far the run is; false while none goes on.
func (c *Control) Standing() (Standing, bool) {
	q := c.queue.Load()
	if q == nil {
		return Standing{}, false
	}
	return q.standing(), true
}

// serves hands a run over, and takes it back with nil.
func (c *Control) serves(q *queue) {
	if c != nil {
		c.queue.Store(q)
	}
}

// Standing is how far a run is.
type Standing struct {
	Paused   bool `json:"paused,omitempty"`
	Draining bool `json:"draining,omitempty"`
	Total    int  `json:"total"` // that this run is to work on
	Done     int  `json:"done"`  // of them
	Skipped  int  `json:"skipped"`
	// Working are those that workers have, Waiting those in the queue, in order.
	Working []string `json:"working"`
	Waiting []string `json:"waiting"`
	// Ended are those that have ended, or had a result before.
	Ended []string `json:"ended"`
	// Dropped were killed before they came to an attempt.
	Dropped []string `json:"dropped,omitempty"`
	// Classes are how those that are done have ended.
	Classes map[trajectories.Class]int `json:"classes"`
}

// do follows an order. What happens is told while the lock is held, so that those
// who watch hear of it in the order in which it happened.
func (q *queue) do(o Order) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return "", ErrNotRunning
	}
	defer q.changed.Broadcast()
	switch o.Action {
	case Pause:
		if q.paused {
			return "it is paused already", nil
		}
		q.paused = true
		return q.tell(o, nil, "paused: nothing more is started, and what runs goes on"), nil
	case Resume:
		if !q.paused && !q.draining {
			return "it is not paused", nil
		}
		q.paused, q.draining = false, false
		return q.tell(o, nil, "resumed"), nil
	case Drain:
		if q.draining {
			return "it is draining already", nil
		}
		q.draining = true
		return q.tell(o, nil, "draining: nothing more is started, and the run ends with what runs"), nil
	case Kill:
		return q.each(o, q.kill)
	case Requeue:
		return q.each(o, q.requeue)
	}
	return "", fmt.Errorf("there is no action %.40q", o.Action)
}

// each follows an order for all that it names. Among several samples those for
// which there is nothing to do are passed over.
func (q *queue) each(o Order, f func(Order, *job) (string, error)) (string, error) {
	named := q.named(o.Who)
	if len(named) == 0 {
		return "", q.unknown(o.Who)
	}
	var said []string
	var failed error
	for _, j := range named {
		text, err := f(o, j)
		if err != nil {
			failed = fmt.Errorf("%s %w", j.who, err)
			continue
		}
		said = append(said, j.who+" "+text)
	}
	if len(said) == 0 {
		return "", failed
	}
	return strings.Join(said, "\n"), nil
}

func (q *queue) kill(o Order, j *job) (string, error) {
	switch j.at {
	case queued:
		q.forget(j)
		q.total--
		return q.tell(o, j, "is killed: it is not started in this run"), nil
	case resting:
		j.at = dropped
		q.total--
		j.stop(&stopped{"killed", o.By})
		return q.tell(o, j, "is killed: it is not tried again in this run"), nil
	case working:
		if j.killed {
			return "is ending already", nil
		}
		j.killed, j.again = true, false
		j.stop(&stopped{"killed", o.By})
		return q.tell(o, j, "is killed: its attempt ends, and its work is kept"), nil
	case dropped:
		return "was killed before", nil
	}
	if j.again { // it has ended, and was asked to begin again
		j.at, j.again = dropped, false
		q.total--
		return q.tell(o, j, "is killed: it is not started in this run"), nil
	}
	return "", ErrEnded
}

func (q *queue) requeue(o Order, j *job) (string, error) {
	if j.again {
		return "goes to the end of the queue already", nil
	}
	switch j.at {
	case queued:
		q.forget(j)
		q.append(j)
		return q.tell(o, j, "goes to the end of the queue"+q.unless()), nil
	case working, resting:
		j.again, j.killed = true, false
		j.stop(&stopped{"requeued", o.By})
		return q.tell(o, j, "is ended, and goes to the end of the queue"+q.unless()), nil
	case dropped:
		q.total++
		if j.held {
			j.again = true
		} else {
			q.append(j)
		}
		return q.tell(o, j, "is in the queue again"+q.unless()), nil
	}
	if j.class == "" { // it had its result before
		q.total++
		q.skipped--
	}
	said := q.tell(o, j, "is tried again, at the end of the queue; what it has stays"+q.unless())
	if j.class != "" {
		q.done--
	}
	j.class, j.anew = "", true
	if j.again = j.held; !j.held {
		q.append(j)
	}
	return said, nil
}

// unless says that what is queued will not be begun. The lock is held.
func (q *queue) unless() string {
	if q.draining {
		return "; but the run drains, and begins it only after a resume"
	}
	return ""
}

// tell makes an event of what an order led to.
func (q *queue) tell(o Order, j *job, text string) string {
	e := Event{Type: Controlled, Action: o.Action, By: o.By, Text: text, Total: q.total}
	if j != nil {
		e = j.event(e)
		e.Class = j.class
	}
	q.log.Emit(e)
	return text
}

// named are the tasks that somebody means: one, or all samples of an instance.
func (q *queue) named(who string) []*job {
	var all []*job
	for _, j := range q.jobs {
		if j.who == who {
			return []*job{j}
		}
		if j.ID == who {
			all = append(all, j)
		}
	}
	return all
}

func (q *queue) unknown(who string) error {
	e := &UnknownError{Who: who}
	for _, j := range q.jobs {
		e.Known = append(e.Known, j.who)
	}
	return e
}

// stopped is why an attempt ends before its end: somebody wants it.
type stopped struct{ what, by string }

func (s *stopped) Error() string {
	if s.by == "" {
		return s.what
	}
	return s.what + " (" + Whose(s.by) + ")"
}

// Unwrap makes it an interruption: the working diff is kept.
func (s *stopped) Unwrap() error { return agent.ErrInterrupted }
