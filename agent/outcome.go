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

// Run works on one task until something ends it, and says what. The sandbox is
// left running; closing it is the caller's. Whatever ended the attempt, the
// working diff is kept while the sandbox lives, and the outcome is the last
// record. Cancel ctx with cause ErrInterrupted to stop an attempt in good
// order.
func (a *Agent) Run(ctx context.Context, s Session) trajectories.Outcome {
	r := &run{Agent: a, Session: s, info: s.Environment.Info(), clock: newClock()}
	r.times.Start = trajectories.Seconds(s.Started)
	r.asking.run = r
	if s.Tools != nil && r.info.Tools {
		r.abilities = s.Tools.Abilities()
	}
	r.limits = Limits{Steps: a.cfg.StepLimit, Cost: a.cfg.CostLimit}
	r.recall()
	err := r.attempt(ctx)
	if errors.Is(err, ErrLimitsExceeded) || errors.Is(err, ErrTimeExceeded) {
		r.publishLimit(err, r.limits, false)
	}

	out := r.outcome(err)
	if r.tree != nil && r.tree.Base == "" {
		out.Warnings = append(out.Warnings, "there is "+r.tree.Missing+" in "+r.info.Dir+"; the "+noDiff)
	}
	r.keepDiff(context.WithoutCancel(ctx), &out)
	out.End, out.Times = time.Now(), s.Past.totalTimes(r.times)
	rec, err := r.record(trajectories.TypeOutcome, out)
	if err == nil && rec.Redacted { // nothing else may pass the key on
		err = json.Unmarshal(rec.Data, &out)
	}
	if err != nil {
		out = r.outcome(err)
		out.End = time.Now()
	}
	s.Events.Publish(events.Ended{Outcome: out})
	return out
}

// attempt is everything until the end: the start-up command, the repository,
// the loop. A defect of ours that panics ends this attempt and no other.
func (r *run) attempt(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Defect{Text: fmt.Sprint(p), Stack: string(debug.Stack())}
		}
	}()
	start := func() {}
	if r.hasPast() { // before the limit can be reached: its time was counted when it was new
		start = r.clock.pause()
	}
	r.publishOpening()
	ctx, detach := r.Talk.attach(ctx)
	defer detach()
	ctx, stop := r.clock.bound(ctx, r.cfg.wallTime(), ErrTimeExceeded)
	defer stop()
	for _, prepare := range []func(context.Context) error{r.equip, r.startup, r.scrub, r.open, r.rebuild} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	start()
	return r.loop(ctx)
}

// startup runs the instance's start-up command, if there is one.
func (r *run) startup(ctx context.Context) error {
	command, err := r.templates.startup.render(r.variables())
	if err != nil || command == "" {
		return err
	}
	execute := r.executeOnce
	if r.hasPast() { // it is on record
		execute = r.executeAgain
	}
	res, err := execute(ctx, command)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return &env.Error{
			Status: env.SetupFailed, Op: "run start-up command",
			Hint: "see run.env_startup_command",
			Err:  fmt.Errorf("exit code %d: %.500s", res.ExitCode, valid(res.Output)),
		}
	}
	return nil
}

// Defect is a panic, which is a mistake in mini.
type Defect struct{ Text, Stack string }

func (d *Defect) Error() string { return d.Text }

// outcome is how the attempt ended, with its totals.
func (r *run) outcome(err error) trajectories.Outcome {
	out := Failed(r.clock.started, err)
	r.Past.Carry(&out)
	all := r.total()
	out.Steps, out.Usage, out.Cost, out.ChildSteps = all.Steps, all.Usage, all.Cost, all.Steps-r.steps
	for _, w := range slices.Concat(r.info.Warnings, r.warnings) {
		if !slices.Contains(out.Warnings, w) { // as another session of the attempt may have said
			out.Warnings = append(out.Warnings, w)
		}
	}
	return out
}

// Failed sorts what ended an attempt into its class. Callers use it for an
// attempt that never came to its agent.
func Failed(start time.Time, err error) trajectories.Outcome {
	out := trajectories.Outcome{Start: start, End: time.Now()}
	out.Class, out.ExitStatus = classify(err)
	if out.Class == trajectories.Submitted || isLimit(err) {
		if s, ok := errors.AsType[*Submitted](err); ok {
			out.Submission, out.Source = s.Patch, s.Source
		}
		return out
	}
	if out.Error = err.Error(); out.Error == out.ExitStatus {
		out.Error = "" // the status says it all
	}
	if e, ok := errors.AsType[*env.Error](err); ok {
		out.Hint = e.Hint
	} else if e, ok := errors.AsType[*model.Error](err); ok {
		out.Hint = e.Hint
	} else if d, ok := errors.AsType[*Defect](err); ok {
		out.Stack = d.Stack
	} else if errors.Is(err, syscall.ENOSPC) {
		out.Hint = "make room on the disk that holds the run's folder, and start again"
	}
	return out
}

// classify is the table of the ways an attempt can end.
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
		return trajectories.Environment, string(e.Status)
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

func providerClass(s model.Status) trajectories.Class {
	if s == model.ContextWindowExceeded || s == model.ContentRefused {
		return trajectories.Limit
	}
	return trajectories.Provider
}

// sandboxLives says whether there can still be commands: not after the sandbox
// itself was what failed.
func sandboxLives(out *trajectories.Outcome) bool {
	return out.Class != trajectories.Environment || out.ExitStatus == string(env.HostDiskFull)
}
