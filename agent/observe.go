package agent

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Phase is what an attempt is in the middle of.
type Phase string

// The phases that an agent tells its Observer of.
const (
	Scrubbing Phase = "scrubbing" // what came after HEAD is being removed from the repository
	Thinking  Phase = "thinking"  // the model was asked
	Waiting   Phase = "waiting"   // for the model's provider
	Running   Phase = "running"   // a command of the model's
	Closing   Phase = "closing"   // the diff is taken
)

// Observer is told what happens in an attempt, as it happens: of each record
// after it was appended, and of what begins. Tools call it from goroutines of
// their own; nothing may take long in it.
type Observer interface {
	// Recorded is told of a record's data.
	Recorded(t trajectories.Type, data any)
	// Began is told of a phase; command is what runs.
	Began(p Phase, command string)
}

// record appends a record, and tells the observer and the subscribers of it.
func (r *run) record(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := r.Recorder.Append(t, data)
	if err != nil {
		return rec, err
	}
	r.addTime(t, data)
	if r.Observer != nil {
		r.Observer.Recorded(t, data)
	}
	r.publish(data)
	return rec, nil
}

// addTime adds up the durations of what is recorded. Those of children are not
// among them: they run within a command.
func (r *run) addTime(t trajectories.Type, data any) {
	switch d := data.(type) {
	case trajectories.Call:
		r.times.Add(t, d.Duration)
	case trajectories.Execution:
		r.times.Add(t, d.Duration)
	case trajectories.Scrub:
		r.times.Add(t, d.Duration)
	case trajectories.Check:
		r.times.Add(t, d.Duration)
	case trajectories.Diff:
		r.times.Add(t, d.Duration)
	}
}

// began tells of a phase.
func (r *run) began(p Phase, command string) {
	if r.Observer != nil {
		r.Observer.Began(p, command)
	}
}

// asks tells that the model is asked, and of its waits for the provider. The
// context is that of the call, whose reply is shown as it is written.
func (r *run) asks(ctx context.Context) context.Context {
	if r.Observer != nil {
		r.began(Thinking, "")
		within := ctx
		ctx = model.WithPause(ctx, func() func() {
			end := model.Pause(within)
			r.began(Waiting, "")
			return func() {
				r.began(Thinking, "")
				end()
			}
		})
	}
	if !r.Events.Wanted() {
		return ctx
	}
	r.Events.Publish(events.TurnStarted{Step: r.steps + 1})
	return model.WithDeltas(ctx, r.Events.Deltas(r.steps+1))
}

// publish tells subscribers of a record. Nothing waits for them, and where there
// are none, nothing is made.
func (r *run) publish(data any) {
	if !r.Events.Wanted() {
		return
	}
	switch d := data.(type) {
	case trajectories.Scrub:
		r.Events.Publish(events.Scrubbed{
			OK: d.OK, Prepared: d.Prepared, ObjectsRemoved: d.ObjectsRemoved, RefsRemoved: d.RefsRemoved, Duration: d.Duration,
		})
	case trajectories.Message:
		r.publishMessage(d)
	case trajectories.Decision:
		e := events.Decided{Step: r.steps, Command: d.Command, Action: string(Allow), Reason: d.Reason, By: d.By, Rule: d.Rule}
		if d.Action != Allow {
			e.Action = string(Deny)
		}
		r.Events.Publish(e)
	case trajectories.ToolCall:
		r.Events.Publish(events.ToolCalled{
			Step: r.steps, Name: d.Name, Args: d.Args, ExitCode: d.ExitCode, Duration: d.Duration, Details: d.Details,
		})
	case trajectories.Compaction:
		r.Events.Publish(events.Compacted{
			Step: r.steps, Policy: d.Policy, MessagesBefore: d.MessagesBefore, MessagesAfter: d.MessagesAfter,
			TokensBefore: d.TokensBefore, TokensAfter: d.TokensAfter,
		})
	}
}

// publishMessage tells of a reply, and of what the model is told beside the
// results of its commands.
func (r *run) publishMessage(m trajectories.Message) {
	switch m.Cause {
	case trajectories.CauseReply:
		e := events.Replied{
			Step: r.steps, Text: m.Content, Reasoning: m.Reasoning, Model: r.newest.Model, Usage: r.newest.Usage, Cost: r.newest.Cost,
			TotalUsage: r.total().Usage, TotalCost: r.total().Cost, Commands: m.Actions,
		}
		for _, a := range r.newest.Attempts {
			e.Duration += trajectories.Seconds(a.Elapsed)
		}
		r.Events.Publish(e)
	case trajectories.CauseFormatError:
		r.Events.Publish(events.FormatError{Step: r.steps, Text: m.Content})
	case trajectories.CauseRejection, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseCommand:
		r.Events.Publish(events.Told{Step: r.steps, Cause: m.Cause, Text: m.Content})
	}
}

// publishOpening publishes the first event of a session.
func (r *run) publishOpening() {
	e := r.Opening
	e.Task, e.Dir, e.Step = r.Task.Text, r.info.Dir, r.steps
	r.Events.Publish(e)
}

// shownTo returns a command whose output is published as it comes, and a function
// that is called with its result. The chunks have the output that the sandbox
// kept, which may be more than is on record.
func (r *run) shownTo(c env.Command, own bool) (_ env.Command, over func(trajectories.Execution, env.Result)) {
	if !r.Events.Wanted() {
		return c, func(trajectories.Execution, env.Result) {}
	}
	r.Events.Publish(events.ActionStarted{Step: r.steps, Command: c.Script, User: own})
	watch, end := r.Events.Watch(r.steps)
	c.Watch = watch
	return c, func(x trajectories.Execution, res env.Result) {
		end()
		e := events.ActionEnded{
			Step: r.steps, Command: x.Command, User: x.Person, ExitCode: x.ExitCode, Signal: x.Signal, TimedOut: x.TimedOut,
			Duration: x.Duration, Bytes: x.Bytes, Truncated: res.Truncated, Exception: x.Exception,
		}
		if res.Truncated {
			e.Head = res.Head
		}
		r.Events.Publish(e)
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
