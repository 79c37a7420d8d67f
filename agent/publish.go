package agent

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Everything here is for those who watch: nothing waits for them, and where
// nobody does, nothing is made.

// opening is the first event of a session.
func (r *run) opening() {
	e := r.Opening
	e.Task, e.Dir, e.Step = r.Task.Text, r.info.Dir, r.steps
	r.Events.Publish(e)
}

// heardBy is the context of a call whose reply is shown as it is written.
func (r *run) heardBy(ctx context.Context) context.Context {
	if !r.Events.Wanted() {
		return ctx
	}
	r.Events.Publish(events.TurnStarted{Step: r.steps + 1})
	return model.WithDeltas(ctx, r.Events.Deltas(r.steps+1))
}

func (r *run) publishReply(reply model.Reply, reading protocol.Reading) {
	if !r.Events.Wanted() {
		return
	}
	e := events.Replied{
		Step: r.steps, Text: reading.Message.Content, Reasoning: reading.Message.Reasoning, Model: reply.Model,
		Usage: reply.Usage, Cost: reply.Cost, TotalUsage: r.total().Usage, TotalCost: r.total().Cost, Commands: reading.Commands(),
	}
	for _, a := range reply.Attempts {
		e.Duration += trajectories.Seconds(a.Elapsed)
	}
	r.Events.Publish(e)
}

// shownTo is a command whose output is shown as it comes. The returned function
// is called when it is over.
func (r *run) shownTo(c env.Command, own bool) (env.Command, func()) {
	if !r.Events.Wanted() {
		return c, func() {}
	}
	r.Events.Publish(events.ActionStarted{Step: r.steps, Command: c.Script, User: own})
	watch, end := r.Events.Watch(r.steps)
	c.Watch = watch
	return c, end
}

// publishExecution tells of a command that is over. Of its output the chunks
// have what the sandbox kept, which may be more than is on record.
func (r *run) publishExecution(x trajectories.Execution, res env.Result) {
	if !r.Events.Wanted() {
		return
	}
	e := events.ActionEnded{
		Step: r.steps, Command: x.Command, User: x.Person, ExitCode: x.ExitCode, Signal: x.Signal, TimedOut: x.TimedOut,
		Duration: x.Duration, Bytes: x.Bytes, Truncated: res.Truncated, Exception: x.Exception,
	}
	if res.Truncated {
		e.Head = res.Head
	}
	r.Events.Publish(e)
}

func (r *run) publishDecision(d trajectories.Decision) {
	action := d.Action
	if action != Allow {
		action = Deny
	}
	r.Events.Publish(events.Decided{
		Step: r.steps, Command: d.Command, Action: string(action), Reason: d.Reason, By: d.By, Rule: d.Rule,
	})
}

// publishMessage tells of what the model is told beside the results of its
// commands.
func (r *run) publishMessage(m trajectories.Message) {
	switch m.Cause {
	case trajectories.CauseFormatError:
		r.Events.Publish(events.FormatError{Step: r.steps, Text: m.Content})
	case trajectories.CauseRejection, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseCommand:
		r.Events.Publish(events.Told{Step: r.steps, Cause: m.Cause, Text: m.Content})
	}
}

// publishLimit tells of a limit that ended the attempt, or was raised. Steps are
// also those of children.
func (r *run) publishLimit(reached error, before Limits, raised bool) {
	e := events.LimitReached{Which: events.LimitSteps, Steps: r.limits.Steps, Cost: model.Cost(r.limits.Cost), Raised: raised}
	switch {
	case errors.Is(reached, ErrTimeExceeded):
		e.Which = events.LimitTime
	case before.Steps == 0 || r.total().Steps < before.Steps:
		e.Which = events.LimitCost
	}
	r.Events.Publish(e)
}
