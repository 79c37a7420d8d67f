package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// run is the state of one session: the history, the totals and the repository.
type run struct {
	*Agent
	Session
	info             env.Info
	capabilities     Capabilities
	toolAttempt      Attempt               // the attempt as tools see it
	attempt          *trajectories.Attempt // what was recorded so far; toolAttempt.mu guards it
	counted          tokenCount
	scale            float64 // provider tokens per estimated token, at the last count
	answered         bool    // a call of this session has succeeded
	commandSummaries []commandSummary
	lastTail         string // last rendered tail
	rejectedAt       int    // number of replies when compactRejected last shortened the conversation
	warnedExtracts   bool   // warnOfExtracts has warned
	warnedLength     bool   // warnOfLength has warned
	clock            *clock
	limits           Limits
	// Format errors up to this record do not count.
	formatErrorsSince int
	submitAction      *protocol.Action // the action of the last submission
	imageCount        int              // images sent so far
	imageBytes        int              // their total size
	// tree is nil until the repository is opened, and with SkipWorktree.
	tree          *worktree.Tree
	hashSchedule  hashSchedule
	patchReturned bool   // a patch that does not apply was sent back to the model
	submittedTree string // hash of the tree with the submitted patch applied; empty if unknown
	warnings      []string
	err           error // what ended the attempt
}

// newRun returns the state of a session: that of a new attempt, or the one to resume from.
func (a *Agent) newRun(s Session) *run {
	r := &run{
		Agent: a, Session: s, info: s.Environment.Info(), clock: newClock(),
		limits: Limits{Steps: a.cfg.StepLimit, Cost: a.cfg.CostLimit},
	}
	r.toolAttempt.run = r
	if r.Repository == nil {
		r.Repository = GitRepository{}
	}
	if s.Tools != nil && r.info.Tools {
		r.capabilities = s.Tools.Capabilities()
	}
	r.restore()
	r.attempt.Totals.Times.SandboxStart += trajectories.Seconds(s.StartupTime)
	return r
}

// workContext returns the context of the attempt's work, which also the inbox and the time
// limit end. The caller must call the returned function.
func (r *run) workContext(ctx context.Context) (context.Context, func()) {
	ctx, cancel := r.Inbox.AttemptContext(ctx)
	ctx, stop := r.clock.withLimit(ctx, r.cfg.wallTime(), ErrTimeExceeded)
	return ctx, func() {
		stop()
		cancel()
	}
}

// prepare prepares the sandbox.
func (r *run) prepare(ctx context.Context) error {
	if r.isResumed() { // the first session counted the time for this preparation
		defer r.clock.pause()()
	}
	start := r.StartEvent
	start.Task, start.Dir, start.Step = r.Task.Text, r.info.Dir, r.steps()
	r.notify(start)
	for _, prepare := range []func(context.Context) error{r.prepareTools, r.runStartupCommand, r.scrub, r.openWorktree, r.rebuild} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runStartupCommand runs the instance's start-up command, if any.
func (r *run) runStartupCommand(ctx context.Context) error {
	command, err := r.templates[startupCommand].render(r.variables())
	if err != nil || command == "" {
		return err
	}
	var res env.Result
	if r.isResumed() { // an earlier session has recorded it
		if res, err = r.Environment.Execute(ctx, r.Command(command)); err != nil {
			err = causeOrErr(ctx, err)
		}
	} else {
		res, _, err = r.execute(ctx, command, false)
	}
	if err == nil && res.ExitCode != 0 {
		err = &env.Error{
			Status: env.SetupFailed, Op: "run start-up command",
			Hint: "see run.env_startup_command",
			Err:  fmt.Errorf("exit code %d: %.500s", res.ExitCode, toValidUTF8(res.Output)),
		}
	}
	return err
}

// start adds the system and instance prompts to the history, or resumes the
// last reply.
func (r *run) start(ctx context.Context) error {
	if r.isResumed() {
		return r.resumeLastReply(ctx)
	}
	system, task, err := r.templates.renderPrompts(r.variables())
	if err != nil {
		return err
	}
	if r.Instructions != "" {
		task = strings.TrimRight(task, "\n") + "\n\n" + r.Instructions
	}
	taskPrompt := model.Message{Role: model.User, Content: task}
	if err := r.addTaskImages(ctx, &taskPrompt); err != nil {
		return err
	}
	return r.addMessages(trajectories.CausePrompt, model.Message{Role: model.System, Content: system}, taskPrompt)
}

// finish records the working diff and the outcome, and returns the outcome. panicked is the
// value of a panic that ended the work; nil if there was none.
func (r *run) finish(ctx context.Context, panicked any) trajectories.Outcome {
	if panicked != nil {
		r.err = &PanicError{Text: fmt.Sprint(panicked), Stack: string(debug.Stack())}
	}
	if r.OnEnd != nil {
		r.OnEnd(r.err)
	}
	if errors.Is(r.err, ErrLimitsExceeded) || errors.Is(r.err, ErrTimeExceeded) {
		r.notifyLimit(r.err, r.limits, false)
	}
	out := r.outcome(r.err)
	if r.tree != nil && r.tree.Base == "" {
		out.Warnings = append(out.Warnings, "there is "+r.tree.Missing+" in "+r.info.Dir+"; the "+noDiffWarning)
	}
	r.addWorkingDiff(context.WithoutCancel(ctx), &out)
	out.End, out.Times = time.Now(), r.attempt.Totals.Times
	rec, err := r.appendRecord(trajectories.TypeOutcome, out)
	if err == nil && rec.Redacted { // the returned outcome must not contain the secret either
		err = json.Unmarshal(rec.Data, &out)
	}
	if err != nil {
		out = r.outcome(err)
		out.End = time.Now()
	}
	r.notify(r.recorded(out))
	return out
}

// outcome returns how the attempt ended, with its totals.
func (r *run) outcome(err error) trajectories.Outcome {
	out := OutcomeOf(r.clock.started, err)
	out.NetworkProof = r.info.NetworkProof
	if s := r.Resume; s != nil {
		out.Start, out.Idle = r.attempt.Totals.Start, trajectories.Seconds(s.Idle)
	}
	total := r.total()
	out.Steps, out.Usage, out.Cost, out.ChildSteps = total.Steps, total.Usage, total.Cost, total.Steps-r.steps()
	for _, w := range slices.Concat(r.info.Warnings, r.warnings) {
		if !slices.Contains(out.Warnings, w) { // an earlier session may have given the same warning
			out.Warnings = append(out.Warnings, w)
		}
	}
	return out
}

// steps returns the number of model calls of the attempt itself.
func (r *run) steps() int { return r.attempt.Totals.Own.Steps }

// total returns what the attempt has spent, including its subagents.
func (r *run) total() Spending {
	r.toolAttempt.mu.Lock()
	defer r.toolAttempt.mu.Unlock()
	return r.attempt.Totals.Spent()
}

func (r *run) variables() map[string]any {
	return r.cfg.variables(r.Task, r.info, r.capabilities, r.steps(), float64(r.total().Cost), r.clock.elapsed().Seconds())
}
