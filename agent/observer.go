package agent

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Phase is a phase of an attempt.
type Phase string

// Phases reported to an Observer.
const (
	PhaseScrubbing Phase = "scrubbing" // removing everything outside HEAD's history from the repository
	PhaseThinking  Phase = "thinking"  // waiting for the model's reply
	PhaseWaiting   Phase = "waiting"   // waiting for the provider: rate limit or outage
	PhaseRunning   Phase = "running"   // running a command of the model
	PhaseClosing   Phase = "closing"   // checking the submission or taking the diff
)

// Observer receives the records and phases of an attempt as they happen. Tools
// call it from their own goroutines. Its methods must return quickly.
type Observer interface {
	// Recorded is called with a record's data after the record was appended.
	Recorded(t trajectories.Type, data any)
	// PhaseStarted is called at the start of a phase. command is the command to
	// run, if any.
	PhaseStarted(p Phase, command string)
}

// record appends a record and passes it to the observer and the subscribers.
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

// addTime adds the duration of a record to the session's times. Calls of
// subagents are left out because they run during a command.
func (r *run) addTime(t trajectories.Type, data any) {
	switch d := data.(type) {
	case trajectories.Call:
		r.times.Add(t, d.Duration)
	case trajectories.Execution:
		r.times.Add(t, d.Duration)
	case trajectories.Scrub:
		r.times.Add(t, d.Duration)
	case trajectories.PatchCheck:
		r.times.Add(t, d.Duration)
	case trajectories.Diff:
		r.times.Add(t, d.Duration)
	}
}

// startPhase reports the start of a phase.
func (r *run) startPhase(p Phase, command string) {
	if r.Observer != nil {
		r.Observer.PhaseStarted(p, command)
	}
}

// withCallEvents reports that a model call starts. It returns the context for
// the call, which reports waits for the provider and publishes the reply as it
// is streamed.
func (r *run) withCallEvents(ctx context.Context) context.Context {
	if r.Observer != nil {
		r.startPhase(PhaseThinking, "")
		ctx = model.WithPause(ctx, func() func() {
			r.startPhase(PhaseWaiting, "")
			return func() { r.startPhase(PhaseThinking, "") }
		})
	}
	if !r.Events.HasSubscribers() {
		return ctx
	}
	r.Events.Publish(events.TurnStarted{Step: r.steps + 1})
	return model.WithDeltas(ctx, r.Events.DeltaFunc(r.steps+1))
}

// publish publishes the event for a record, if there are subscribers.
func (r *run) publish(data any) {
	if !r.Events.HasSubscribers() {
		return
	}
	switch d := data.(type) {
	case trajectories.Scrub:
		r.Events.Publish(events.Scrubbed{
			OK: d.OK, Prepared: d.Prepared, ObjectsRemoved: d.ObjectsRemoved, RefsRemoved: d.RefsRemoved, Duration: d.Duration,
		})
	case trajectories.Message:
		r.publishMessage(d)
	case trajectories.CommandDecision:
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
			TokensBefore: d.TokensBefore, TokensAfter: d.TokensAfter, Fallback: d.Fallback,
		})
	}
}

// publishMessage publishes a reply, a format error or a message of the user.
func (r *run) publishMessage(m trajectories.Message) {
	switch m.Cause {
	case trajectories.CauseReply:
		e := events.Replied{
			Step: r.steps, Text: m.Content, Reasoning: m.Reasoning, Model: r.lastReply.Model, Usage: r.lastReply.Usage, Cost: r.lastReply.Cost,
			TotalUsage: r.total().Usage, TotalCost: r.total().Cost, Commands: m.Actions,
		}
		for _, a := range r.lastReply.Requests {
			e.Duration += trajectories.Seconds(a.Elapsed)
		}
		r.Events.Publish(e)
	case trajectories.CauseFormatError:
		r.Events.Publish(events.FormatError{Step: r.steps, Text: m.Content})
	case trajectories.CauseRejection, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseUserCommand:
		r.Events.Publish(events.UserMessage{Step: r.steps, Cause: m.Cause, Text: m.Content})
	}
}

// publishStart publishes the first event of a session.
func (r *run) publishStart() {
	e := r.StartEvent
	e.Task, e.Dir, e.Step = r.Task.Text, r.info.Dir, r.steps
	r.Events.Publish(e)
}

// withOutputEvents returns a command that publishes its output as it is
// written, and a function to call with its result. The published output is what
// the sandbox keeps, which may be more than the journal keeps.
func (r *run) withOutputEvents(c env.Command, byUser bool) (_ env.Command, publishResult func(trajectories.Execution, env.Result)) {
	if !r.Events.HasSubscribers() {
		return c, func(trajectories.Execution, env.Result) {}
	}
	r.Events.Publish(events.ActionStarted{Step: r.steps, Command: c.Script, ByUser: byUser})
	onOutput, endOutput := r.Events.OutputFunc(r.steps)
	c.OnOutput = onOutput
	return c, func(x trajectories.Execution, res env.Result) {
		endOutput()
		e := events.ActionEnded{
			Step: r.steps, Command: x.Command, ByUser: x.ByUser, ExitCode: x.ExitCode, Signal: x.Signal, TimedOut: x.TimedOut,
			Duration: x.Duration, Bytes: x.Bytes, Truncated: res.Truncated, Exception: x.Exception,
		}
		if res.Truncated {
			e.Head = res.Head
		}
		r.Events.Publish(e)
	}
}

// publishLimit publishes that a limit ended the attempt or was raised. The
// limit on steps includes those of subagents.
func (r *run) publishLimit(reached error, before Limits, raised bool) {
	e := events.LimitReached{Limit: events.LimitSteps, Steps: r.limits.Steps, Cost: model.Cost(r.limits.Cost), Raised: raised}
	switch {
	case errors.Is(reached, ErrTimeExceeded):
		e.Limit = events.LimitTime
	case before.Steps == 0 || r.total().Steps < before.Steps:
		e.Limit = events.LimitCost
	}
	r.Events.Publish(e)
}
