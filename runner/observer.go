package runner

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/trajectories"
)

// observer emits the events of an attempt and counts its cost. Subagents of the
// attempt use it concurrently.
type observer struct {
	mu      sync.Mutex
	log     *EventLog
	budget  *budgetTracker
	breaker *circuitBreaker
	task    *task
	attempt int
	step    int
	cost    float64
	phase   Phase
}

// Observe implements agent.Observer.
func (o *observer) Observe(e events.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := e.(events.Recorded); ok {
		o.step, o.cost = r.Step, float64(r.Spent.Cost)
	}
	if c, ok := events.Content(e).(trajectories.ModelCall); ok {
		o.budget.addCost(c.OfChild(0).Cost)
	}
	switch d := events.Content(e).(type) {
	case events.PhaseStarted:
		o.startPhase(d.Phase, d.Command)
	case trajectories.Call:
		if d.Error == "" {
			o.breaker.onAnswer()
		}
	case trajectories.Execution:
		e := o.event(CommandFinished)
		e.Command, e.ExitCode, e.TimedOut = o.log.shorten(d.Command), d.ExitCode, d.TimedOut
		o.log.Emit(e)
	case trajectories.CommandDecision:
		if d.Action != trajectories.Allow {
			e := o.event(CommandDenied)
			e.Command, e.Text = o.log.shorten(d.Command), o.log.shorten(d.Reason)
			o.log.Emit(e)
		}
	case trajectories.Message:
		if d.Cause == trajectories.CauseFormatError {
			o.log.Emit(o.event(FormatError))
		}
	case trajectories.Outcome:
		if d.ExitStatus == agent.ErrRepeatedFormatError.Error() { // the agent records no message for the last format error
			e := o.event(FormatError)
			e.Text = "limit of consecutive format errors reached"
			o.log.Emit(e)
		}
	}
}

func (o *observer) event(t EventType) Event {
	return o.task.event(Event{Type: t, Attempt: o.attempt, Step: o.step, Cost: o.cost})
}

func (o *observer) startPhase(p Phase, command string) {
	if p == PhaseClosing && o.phase == PhaseClosing {
		return
	}
	o.phase = p
	e := o.event(PhaseChanged)
	e.Phase, e.Command = p, o.log.shorten(command)
	if p == PhaseThinking || p == PhaseWaiting {
		e.Step++ // o.step counts finished calls; this call is the next step
	}
	o.log.Emit(e)
}

// reportRebuild emits the event that the rerun of command number done of total
// starts.
func (o *observer) reportRebuild(done, total int, command string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.event(PhaseChanged)
	e.Phase, e.Done, e.Total, e.Command = PhaseRebuilding, done, total, o.log.shorten(command)
	o.log.Emit(e)
}
