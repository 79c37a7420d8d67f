package agent

import (
	"context"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Approver decides on each command of the model before it runs.
type Approver interface {
	// Decide returns whether a command may run. The decision is recorded. The
	// attempt's clock is paused during the call. An error ends the attempt.
	Decide(ctx context.Context, request ApprovalRequest) (Decision, error)
}

// ApprovalRequest is a command that a model wants to run.
type ApprovalRequest struct {
	Command string
	// Dir is the working directory in the sandbox.
	Dir string
	// Step is the number of steps so far. Cost is what the attempt has spent so
	// far, including summaries and subagents.
	Step int
	Cost model.Cost
	// FromChild reports that a subagent wants to run the command.
	FromChild bool
}

// Decision is the decision on a command.
type Decision = trajectories.Decision

// DecisionAction is what to do with a command.
type DecisionAction = trajectories.DecisionAction

// The actions. The agent treats Ask as Deny: an approver returns Ask if it got
// no answer.
const (
	Allow = trajectories.Allow
	Ask   = trajectories.Ask
	Deny  = trajectories.Deny
)

// ByUser is the value of Decision.By if the user decided.
const ByUser = "user"

// requestApproval asks the approver. If the command is denied, it returns the
// Feedback for the model. After an interruption by the user it does not ask.
func (r *run) requestApproval(ctx context.Context, a protocol.Action) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.Inbox.isInterrupted() {
		return r.skipInterrupted(a)
	}
	if r.Approver == nil {
		return nil
	}
	request := ApprovalRequest{Command: a.Command, Dir: r.info.Dir, Step: r.steps, Cost: r.total().Cost}
	d, err := withClockPaused(ctx, func() (Decision, error) { return r.Approver.Decide(ctx, request) })
	if err != nil {
		return causeOrErr(ctx, err)
	}
	record := trajectories.CommandDecision{Command: a.Command, Decision: d}
	if _, err := r.record(trajectories.TypeDecision, record); err != nil {
		return err
	}
	switch {
	case d.Action == Allow && r.Inbox.isInterrupted():
		return r.skipInterrupted(a)
	case d.Action == Allow:
		return nil
	}
	f := &Feedback{Reason: "UserRejection"}
	f.add(trajectories.CauseRejection, r.protocol.ResultMessage(a, rejectionText(d)))
	return f
}

// userRejection is how the message to the model starts when the user gave a
// reason for not running a command.
const userRejection = "The user did not let this command run. The user says: "

// rejectionText is the message to the model for a command that was not allowed.
func rejectionText(d Decision) string {
	switch {
	case d.By == ByUser && d.Reason == "":
		return "The user did not let this command run."
	case d.By == ByUser:
		return userRejection + d.Reason
	case d.Reason == "":
		return "This command is not allowed here, and was not run."
	}
	return "This command is not allowed here, and was not run: " + d.Reason
}

// skipInterrupted skips an action because the user interrupted before it ran.
func (r *run) skipInterrupted(a protocol.Action) error {
	f := &Feedback{Reason: "UserInterruption"}
	f.add(trajectories.CauseNotRun, protocol.NotRunMessages(r.protocol, []protocol.Action{a}, "Not run: the user interrupted.")...)
	return f
}
