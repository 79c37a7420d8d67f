package runner

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// observer tells the run of each step of an attempt, as it happens. Children of
// the attempt spend what is its at the same time.
type observer struct {
	mu      sync.Mutex
	log     *Log
	purse   *purse
	strikes *strikes
	task    task
	attempt int
	step    int
	cost    float64
	phase   Phase
}

// Recorded implements agent.Observer.
func (o *observer) Recorded(t trajectories.Type, data any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch d := data.(type) {
	case trajectories.Spent:
		o.pay(d.Cost)
	case trajectories.Call:
		o.pay(d.Cost)
		if t == trajectories.TypeSummary { // it costs, and is no step
			break
		}
		o.step++
		if d.Error == "" {
			o.strikes.answered()
		}
	case trajectories.Execution:
		e := o.event(Step)
		e.Command, e.ExitCode, e.TimedOut = o.log.shorten(d.Command), d.ExitCode, d.TimedOut
		o.log.Emit(e)
	case trajectories.Decision:
		if d.Action != trajectories.Allow {
			e := o.event(Refused)
			e.Command, e.Text = o.log.shorten(d.Command), o.log.shorten(d.Reason)
			o.log.Emit(e)
		}
	case trajectories.Message:
		if d.Cause == trajectories.CauseFormatError {
			o.log.Emit(o.event(FormatError))
		}
	case trajectories.Outcome:
		if d.ExitStatus == agent.ErrRepeatedFormatError.Error() { // the last error is no message: nothing follows it
			e := o.event(FormatError)
			e.Text = "the last that is allowed in a row"
			o.log.Emit(e)
		}
	}
}

func (o *observer) pay(c model.Cost) {
	o.cost += float64(c)
	o.purse.pay(c)
}

func (o *observer) event(t EventType) Event {
	return o.task.event(Event{Type: t, Attempt: o.attempt, Step: o.step, Cost: o.cost})
}

// Began implements agent.Observer.
func (o *observer) Began(p Phase, command string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p == Closing && o.phase == Closing {
		return
	}
	o.phase = p
	e := o.event(Doing)
	e.Phase, e.Command = p, o.log.shorten(command)
	if p == Thinking || p == Waiting {
		e.Step++ // the one that this call begins
	}
	o.log.Emit(e)
}

// rebuilding tells of a command of the past as it begins.
func (o *observer) rebuilding(i, of int, command string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.event(Doing)
	e.Phase, e.Done, e.Total, e.Command = Rebuilding, i, of, o.log.shorten(command)
	o.log.Emit(e)
}
