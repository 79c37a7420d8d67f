package agent

import (
	"errors"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// What can end an attempt, beside the errors of the model and the sandbox.
// Their texts are the exit statuses, and part of the file format.
var (
	ErrLimitsExceeded      = errors.New("LimitsExceeded")      // steps or cost
	ErrTimeExceeded        = errors.New("TimeExceeded")        // wall time
	ErrRepeatedFormatError = errors.New("RepeatedFormatError") // too many replies in a row without one action
	// ErrInterrupted is the cause to cancel an attempt's context with, when
	// the user stops a run; ErrBudgetExhausted when the run's money is spent.
	ErrInterrupted     = errors.New("Interrupted")
	ErrBudgetExhausted = errors.New("BudgetExhausted")
	// ErrDiverged is wrapped by what Past.Rebuild returns when a command of the
	// past did something else than it did: the attempt cannot go on.
	ErrDiverged = errors.New("Diverged")
)

// Submitted ends an attempt by the agent's own word.
type Submitted struct {
	// Patch is what followed the marker, byte for byte but for what
	// trajectories.Check says was done to it. It is nil where the working diff
	// is to be taken (trajectories.SourceWorktree).
	Patch  []byte
	Source trajectories.Source
	// Reply is the text of a reply without a command, where that is what ended
	// the attempt (Config.PlainReply); nothing was handed in then.
	Reply string
}

func (*Submitted) Error() string { return "Submitted" }

// Feedback does not end the attempt: its messages are appended and the loop
// goes on. Format errors, rejected commands, a patch that does not apply and what
// people say are of this kind.
type Feedback struct {
	// Reason is "FormatError", "UserRejection", "MalformedPatch",
	// "UserInterruption" or "UserCommand".
	Reason   string
	Messages []trajectories.Message
}

func (f *Feedback) Error() string { return f.Reason }

func (f *Feedback) add(cause trajectories.Cause, messages ...model.Message) {
	for _, m := range messages {
		f.Messages = append(f.Messages, trajectories.Message{Message: m, Cause: cause})
	}
}
