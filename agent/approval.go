package agent

import (
	"context"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Approver decides on each command of the model before it runs.
type Approver interface {
	// Decide says whether a command may run. The decision is recorded. The
	// clock of the attempt is paused meanwhile. An error ends the attempt.
	Decide(ctx context.Context, p ApprovalRequest) (Decision, error)
}

// ApprovalRequest is a command that a model wants to run.
type ApprovalRequest struct {
	Command string
	// Dir is the working directory in the sandbox.
	Dir string
	// Step is the number of model calls so far, Cost their cost.
	Step int
	Cost model.Cost
	// Child reports that a subagent wants to run the command.
	Child bool
}

// Decision is the decision on a command.
type Decision = trajectories.Decision

// DecisionAction is what to do with a command.
type DecisionAction = trajectories.DecisionAction

// The actions. An Ask that is returned to the agent was not answered and is
// treated as a Deny.
const (
	Allow = trajectories.Allow
	Ask   = trajectories.Ask
	Deny  = trajectories.Deny
)

// ByUser is the Decision.By of a decision of the user.
const ByUser = "user"

// requestApproval asks the approver. If the command is denied, it returns the
// Feedback for the model. It does not ask after an interruption.
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
	p := ApprovalRequest{Command: a.Command, Dir: r.info.Dir, Step: r.steps, Cost: r.total().Cost}
	d, err := withClockPaused(ctx, func() (Decision, error) { return r.Approver.Decide(ctx, p) })
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

// skipInterrupted skips an action because of an interruption before it.
func (r *run) skipInterrupted(a protocol.Action) error {
	f := &Feedback{Reason: "UserInterruption"}
	f.add(trajectories.CauseNotRun, protocol.NotRunMessages(r.protocol, []protocol.Action{a}, "Not run: the user interrupted.")...)
	return f
}
