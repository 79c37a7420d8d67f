package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Run works on one task until something ends the attempt, and returns the
// outcome. It does not close the sandbox. Whatever ended the attempt, Run
// records the working diff if the repository was opened and the sandbox is
// still alive, then the outcome as the last record. To stop an attempt in an
// orderly way, cancel ctx with cause ErrInterrupted.
func (a *Agent) Run(ctx context.Context, s Session) trajectories.Outcome {
	return a.runSession(ctx, s, (*run).loop)
}

// runSession is Run with the work that follows the preparation.
func (a *Agent) runSession(ctx context.Context, s Session, work func(*run, context.Context) error) trajectories.Outcome {
	r := &run{Agent: a, Session: s, info: s.Environment.Info(), clock: newClock()}
	r.times.SandboxStart = trajectories.Seconds(s.StartupTime)
	r.toolAttempt.run = r
	if r.Repository == nil {
		r.Repository = GitRepository{}
	}
	if s.Tools != nil && r.info.Tools {
		r.capabilities = s.Tools.Capabilities()
	}
	r.limits = Limits{Steps: a.cfg.StepLimit, Cost: a.cfg.CostLimit}
	r.restore()
	err := r.runAttempt(ctx, work)
	if errors.Is(err, ErrLimitsExceeded) || errors.Is(err, ErrTimeExceeded) {
		r.publishLimit(err, r.limits, false)
	}

	out := r.outcome(err)
	if r.tree != nil && r.tree.Base == "" {
		out.Warnings = append(out.Warnings, "there is "+r.tree.Missing+" in "+r.info.Dir+"; the "+noDiffWarning)
	}
	r.addWorkingDiff(context.WithoutCancel(ctx), &out)
	out.End, out.Times = time.Now(), s.Resume.totalTimes(r.times)
	rec, err := r.record(trajectories.TypeOutcome, out)
	if err == nil && rec.Redacted { // the returned outcome must not contain the secret either
		err = json.Unmarshal(rec.Data, &out)
	}
	if err != nil {
		out = r.outcome(err)
		out.End = time.Now()
	}
	s.Events.Publish(events.RunEnded{Outcome: out})
	return out
}

// runAttempt prepares the sandbox and works. It recovers a panic as a
// *PanicError, so that other attempts continue.
func (r *run) runAttempt(ctx context.Context, work func(*run, context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Text: fmt.Sprint(p), Stack: string(debug.Stack())}
		}
	}()
	resumeClock := func() {}
	if r.isResumed() { // the first session counted the time for this preparation
		resumeClock = r.clock.pause()
	}
	r.publishStart()
	ctx, cancel := r.Inbox.AttemptContext(ctx)
	defer cancel()
	ctx, stop := r.clock.withLimit(ctx, r.cfg.wallTime(), ErrTimeExceeded)
	defer stop()
	for _, prepare := range []func(context.Context) error{r.prepareTools, r.runStartupCommand, r.scrub, r.openWorktree, r.rebuild} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	resumeClock()
	return work(r, ctx)
}

// runStartupCommand runs the instance's start-up command, if any.
func (r *run) runStartupCommand(ctx context.Context) error {
	command, err := r.templates.startup.render(r.variables())
	if err != nil || command == "" {
		return err
	}
	execute := r.executeAndRecord
	if r.isResumed() { // already recorded
		execute = r.executeUnrecorded
	}
	res, err := execute(ctx, command)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return &env.Error{
			Status: env.SetupFailed, Op: "run start-up command",
			Hint: "see run.env_startup_command",
			Err:  fmt.Errorf("exit code %d: %.500s", res.ExitCode, toValidUTF8(res.Output)),
		}
	}
	return nil
}

// PanicError is a recovered panic: a bug in mini.
type PanicError struct{ Text, Stack string }

func (e *PanicError) Error() string { return e.Text }

// outcome returns how the attempt ended, with its totals.
func (r *run) outcome(err error) trajectories.Outcome {
	out := OutcomeOf(r.clock.started, err)
	out.NetworkProof = r.info.NetworkProof
	r.Resume.AddTo(&out)
	total := r.total()
	out.Steps, out.Usage, out.Cost, out.ChildSteps = total.Steps, total.Usage, total.Cost, total.Steps-r.steps
	for _, w := range slices.Concat(r.info.Warnings, r.warnings) {
		if !slices.Contains(out.Warnings, w) { // an earlier session may have given the same warning
			out.Warnings = append(out.Warnings, w)
		}
	}
	return out
}

// OutcomeOf classifies the error that ended an attempt. Callers also use it for
// an attempt that failed before its agent started.
func OutcomeOf(start time.Time, err error) trajectories.Outcome {
	out := trajectories.Outcome{Start: start, End: time.Now()}
	out.Class, out.ExitStatus = classify(err)
	if out.Class == trajectories.Submitted || isLimit(err) {
		if s, ok := errors.AsType[*Submitted](err); ok {
			out.Submission, out.Source = s.Patch, s.Source
		}
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

// classify maps an error to the outcome's class and exit status.
func classify(err error) (trajectories.Class, string) {
	if _, ok := errors.AsType[*Submitted](err); ok {
		return trajectories.Submitted, "Submitted"
	}
	for _, e := range []error{ErrLimitsExceeded, ErrTimeExceeded, ErrRepeatedFormatError} {
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

func isLimit(err error) bool {
	return errors.Is(err, ErrLimitsExceeded) || errors.Is(err, ErrTimeExceeded) || errors.Is(err, ErrRepeatedFormatError)
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
