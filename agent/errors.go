package agent

import (
	"errors"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Errors that end an attempt, besides those of the model and the sandbox. Their
// texts are the exit statuses in the files of a run.
var (
	ErrLimitsExceeded      = errors.New("LimitsExceeded")      // steps or cost
	ErrTimeExceeded        = errors.New("TimeExceeded")        // wall time
	ErrRepeatedFormatError = errors.New("RepeatedFormatError") // too many consecutive replies without a valid command
	// ErrInterrupted is the cause to cancel an attempt's context with when the
	// user stops a run. ErrBudgetExhausted means that the run's budget is
	// spent.
	ErrInterrupted     = errors.New("Interrupted")
	ErrBudgetExhausted = errors.New("BudgetExhausted")
	// ErrDiverged is wrapped by the error of ResumeState.Rebuild if a command's
	// result differs from the recorded one. The attempt cannot be resumed.
	ErrDiverged = errors.New("Diverged")
)

// Submitted ends an attempt with a submission.
type Submitted struct {
	// Patch is the text after the marker line, unchanged except as
	// trajectories.PatchCheck records. It is nil if the working diff is to be
	// submitted (trajectories.SourceWorktree).
	Patch  []byte
	Source trajectories.SubmissionSource
	// Reply is the text of the plain reply that ended the attempt (see
	// Config.PlainReply); else empty. Patch is nil then.
	Reply string
}

func (*Submitted) Error() string { return "Submitted" }

// userTurn ends a step with a plain reply, which the user answers (see
// Config.PlainReply). problem is what the model is told if the user does not.
type userTurn struct{ problem error }

func (*userTurn) Error() string { return "UserTurn" }

// Feedback is an error that does not end the attempt: its messages are added to
// the history and the loop continues. Examples are format errors, rejected
// commands, patches that do not apply and messages of the user.
type Feedback struct {
	// Reason is "FormatError", "UserRejection", "MalformedPatch",
	// "UserInterruption", "UserCommand" or "ContainerDied".
	Reason   string
	Messages []trajectories.Message
}

func (f *Feedback) Error() string { return f.Reason }

func (f *Feedback) add(cause trajectories.Cause, messages ...model.Message) {
	for _, m := range messages {
		f.Messages = append(f.Messages, trajectories.Message{Message: m, Cause: cause})
	}
}
