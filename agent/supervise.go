package agent

import (
	"context"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Supervisor decides on each command of the model before it runs.
type Supervisor interface {
	// Decide says whether a command may run. What it returns goes on record. The
	// clock of the attempt stands still meanwhile. An error ends the attempt.
	Decide(ctx context.Context, p Proposal) (Decision, error)
}

// Proposal is a command that a model wants to run.
type Proposal struct {
	Command string
	// Dir is the working directory in the sandbox.
	Dir string
	// Reply is the text of the model around the command; it may be empty.
	Reply string
	// Step counts the calls of the model, Cost what they took so far.
	Step int
	Cost model.Cost
	// Child says that it is a child's: one of an agent that works for the model
	// which the person talks to.
	Child bool
}

// Decision is what a supervisor says of a command.
type Decision = trajectories.Ruling

// Verb is what becomes of a command.
type Verb = trajectories.Verb

// The verbs. An Ask that comes back to the agent had nobody to be answered by,
// and is a Deny.
const (
	Allow = trajectories.Allow
	Ask   = trajectories.Ask
	Deny  = trajectories.Deny
)

// ByUser is the Decision.By of a person's own word.
const ByUser = "user"

// supervise asks the supervisor; a refusal is told to the model. Who has been
// interrupted is not asked.
func (r *run) supervise(ctx context.Context, a protocol.Action) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.Talk.halted() {
		return r.unrun(a)
	}
	if r.Supervisor == nil {
		return nil
	}
	p := Proposal{Command: a.Command, Dir: r.info.Dir, Reply: r.newestReply(), Step: r.steps, Cost: r.total().Cost}
	d, err := asked(r, func() (Decision, error) { return r.Supervisor.Decide(ctx, p) })
	if err != nil {
		return orCause(ctx, err)
	}
	decided := trajectories.Decision{Command: a.Command, Ruling: d}
	if _, err := r.record(trajectories.TypeDecision, decided); err != nil {
		return err
	}
	switch {
	case d.Action == Allow && r.Talk.halted():
		return r.unrun(a)
	case d.Action == Allow:
		return nil
	}
	f := &Feedback{Reason: "UserRejection"}
	f.add(trajectories.CauseRejection, r.protocol.Answer(a, refusal(d)))
	return f
}

// rejectionSays begins what the model is told of a command that a person did not
// let run, with a word of theirs.
const rejectionSays = "The user did not let this command run. The user says: "

// refusal is what the model is told of a command that was not allowed.
func refusal(d Decision) string {
	switch {
	case d.By == ByUser && d.Reason == "":
		return "The user did not let this command run."
	case d.By == ByUser:
		return rejectionSays + d.Reason
	case d.Reason == "":
		return "This command is not allowed here, and was not run."
	}
	return "This command is not allowed here, and was not run: " + d.Reason
}

// unrun ends a reply whose next action an interruption came before.
func (r *run) unrun(a protocol.Action) error {
	f := &Feedback{Reason: "UserInterruption"}
	f.add(trajectories.CauseNotRun, protocol.Unrun(r.protocol, []protocol.Action{a}, "Not run: the user interrupted.")...)
	return f
}

func (r *run) newestReply() string {
	for i := len(r.messages) - 1; i >= 0; i-- {
		if r.messages[i].Role == model.Assistant {
			return r.messages[i].Content
		}
	}
	return ""
}
