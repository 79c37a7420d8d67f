package agent

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/minibench/mini/env"
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

// newFeedback returns Feedback with messages of one cause.
func newFeedback(reason string, cause trajectories.Cause, messages ...model.Message) *Feedback {
	f := &Feedback{Reason: reason}
	f.add(cause, messages...)
	return f
}

func (f *Feedback) Error() string { return f.Reason }

func (f *Feedback) add(cause trajectories.Cause, messages ...model.Message) {
	for _, m := range messages {
		f.Messages = append(f.Messages, trajectories.Message{Message: m, Cause: cause})
	}
}

// PanicError is a recovered panic: a bug in mini.
type PanicError struct{ Text, Stack string }

func (e *PanicError) Error() string { return e.Text }

// OutcomeOf classifies the error that ended an attempt. Callers also use it for
// an attempt that failed before its agent started.
func OutcomeOf(start time.Time, err error) trajectories.Outcome {
	out := trajectories.Outcome{Start: start, End: time.Now()}
	out.Class, out.ExitStatus = classify(err)
	if s, ok := errors.AsType[*Submitted](err); ok {
		out.Submission, out.Source = s.Patch, s.Source
		return out
	}
	if slices.ContainsFunc(limitErrors, func(e error) bool { return errors.Is(err, e) }) {
		return out
	}
	if out.Error = err.Error(); out.Error == out.ExitStatus {
		out.Error = "" // the status says the same
	}
	if e, ok := errors.AsType[*env.Error](err); ok {
		out.Hint = e.Hint
	} else if e, ok := errors.AsType[*model.Error](err); ok {
		out.Hint = e.Hint
	} else if e, ok := errors.AsType[*PanicError](err); ok {
		out.Stack = e.Stack
	} else if errors.Is(err, syscall.ENOSPC) {
		out.Hint = "free space on the disk of the run folder, then start again"
	}
	return out
}

// limitErrors end an attempt with a result.
var limitErrors = []error{ErrLimitsExceeded, ErrTimeExceeded, ErrRepeatedFormatError}

// classify maps an error to the outcome's class and exit status.
func classify(err error) (trajectories.Class, string) {
	if _, ok := errors.AsType[*Submitted](err); ok {
		return trajectories.Submitted, "Submitted"
	}
	for _, e := range limitErrors {
		if errors.Is(err, e) {
			return trajectories.Limit, e.Error()
		}
	}
	for _, e := range []error{ErrInterrupted, ErrBudgetExhausted, ErrDiverged} {
		if errors.Is(err, e) {
			return trajectories.Interrupted, e.Error()
		}
	}
	if e, ok := errors.AsType[*env.Error](err); ok {
		return environmentClass(e.Status), string(e.Status)
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		return providerClass(e.Status), string(e.Status)
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return trajectories.Environment, string(env.HostDiskFull)
	case errors.Is(err, context.Canceled):
		return trajectories.Interrupted, ErrInterrupted.Error()
	}
	return trajectories.Internal, "InternalError"
}

func environmentClass(s env.Status) trajectories.Class {
	if s == env.SandboxLimitExceeded {
		return trajectories.Limit
	}
	return trajectories.Environment
}

func providerClass(s model.Status) trajectories.Class {
	if s == model.ContextWindowExceeded || s == model.ContentRefused {
		return trajectories.Limit
	}
	return trajectories.Provider
}

// isSandboxAlive reports whether the sandbox can still run commands, judged by
// the outcome.
func isSandboxAlive(out *trajectories.Outcome) bool {
	if out.ExitStatus == string(env.SandboxLimitExceeded) {
		return false
	}
	return out.Class != trajectories.Environment || out.ExitStatus == string(env.HostDiskFull)
}

// causeOrErr returns the cause of ctx's end if ctx has ended, else err.
func causeOrErr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
