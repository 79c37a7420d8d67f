package runner

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// observer emits the events of an attempt and counts its cost. Subagents of the
// attempt use it concurrently.
type observer struct {
	mu      sync.Mutex
	log     *EventLog
	budget  *budgetTracker
	breaker *circuitBreaker
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
	case trajectories.ChildCall:
		o.addCost(d.Cost)
	case trajectories.Call:
		o.addCost(d.Cost)
		if t == trajectories.TypeSummary { // a summary call has a cost but is not a step
			break
		}
		o.step++
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

func (o *observer) addCost(c model.Cost) {
	o.cost += float64(c)
	o.budget.addCost(c)
}

func (o *observer) event(t EventType) Event {
	return o.task.event(Event{Type: t, Attempt: o.attempt, Step: o.step, Cost: o.cost})
}

// PhaseStarted implements agent.Observer.
func (o *observer) PhaseStarted(p Phase, command string) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
