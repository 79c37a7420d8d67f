package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
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

// requestApproval asks the approver and returns the command to run: that of the
// action, or what the user changed it to. If the command is denied, it returns the
// Feedback for the model. After an interruption by the user it does not ask.
func (r *run) requestApproval(ctx context.Context, a protocol.Action) (command string, err error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if r.Inbox.isInterrupted() {
		return "", r.skipInterrupted(a)
	}
	if r.Approver == nil {
		return a.Command, nil
	}
	request := ApprovalRequest{Command: a.Command, Dir: r.info.Dir, Step: r.steps(), Cost: r.total().Cost}
	d, err := withClockPaused(ctx, func() (Decision, error) { return r.Approver.Decide(ctx, request) })
	if err != nil {
		return "", causeOrErr(ctx, err)
	}
	record := trajectories.CommandDecision{Command: a.Command, Decision: d}
	if _, err := r.record(trajectories.TypeDecision, record); err != nil {
		return "", err
	}
	switch {
	case d.Action == Allow && r.Inbox.isInterrupted():
		return "", r.skipInterrupted(a)
	case d.Action == Allow:
		return cmp.Or(d.Edited, a.Command), nil
	}
	return "", newFeedback("UserRejection", trajectories.CauseRejection, r.protocol.ResultMessage(a, rejectionText(d)))
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
	return newFeedback("UserInterruption", trajectories.CauseNotRun,
		protocol.NotRunMessages(r.protocol, []protocol.Action{a}, "Not run: the user interrupted.")...)
}

// execute runs a command and records its result. interrupted reports that the
// user interrupted it. byUser marks a command that the user wrote.
func (r *run) execute(ctx context.Context, script string, byUser bool) (res env.Result, interrupted bool, err error) {
	callCtx, done := r.Inbox.callContext(ctx)
	defer done()
	start := time.Now()
	r.notify(events.PhaseStarted{Phase: events.PhaseRunning, Step: r.steps(), Command: script, ByUser: byUser})
	command, toolErr := r.withTools(r.Command(script))
	onOutput, endOutput := r.Events.OutputFunc(r.steps())
	command.OnOutput = onOutput
	res, err = r.Environment.Execute(callCtx, command)
	interrupted = err != nil && ctx.Err() == nil && errors.Is(context.Cause(callCtx), errUserInterrupt)
	x := executionRecord(script, start, res, r.exception(res, interrupted))
	x.ByUser = byUser
	if err != nil && !interrupted && x.Exception == "" && res.Duration == 0 { // the sandbox failed, or the attempt ends
		x.ExitCodeUnknown, x.Exception = x.ExitCode == 0, "no result: "+causeOrErr(ctx, err).Error()
	}
	r.hashSchedule.processesLeft = len(res.Background) > 0
	endOutput()
	recErr := errors.Join(toolErr(), r.recordExecution(x))
	switch _, isEnvErr := errors.AsType[*env.Error](err); {
	case interrupted && !isEnvErr:
		err = nil
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return res, interrupted, errors.Join(err, recErr)
}

// exception describes for the model how a command failed, beyond its exit code.
func (r *run) exception(res env.Result, interrupted bool) string {
	if interrupted {
		return "The user interrupted the command, which was killed with everything it had started."
	}
	return exception(res, r.cfg.Timeout)
}

// Command returns the environment command for the text of an action.
func (a *Agent) Command(script string) env.Command {
	return env.Command{Script: script, Timeout: a.cfg.Timeout, OutputLimit: a.cfg.outputLimit(), SubmissionMarkers: SubmitMarkers}
}

// outputLimit returns how many bytes of an output the sandbox must keep: enough
// for head and tail of an observation at four bytes per character, and for the
// journal.
func (c Config) outputLimit() int {
	o := c.Observation
	limit := max(env.DefaultOutputLimit, c.JournalOutput, 4*o.MaxChars, 8*max(o.HeadChars, o.TailChars))
	if o.Keep == KeepTail {
		limit = max(limit, 2*o.MaxBytes)
	}
	return limit
}

// reportResult sends the result of a command, that of the action or what the user
// changed it to, to the model. After an interruption the remaining actions of the
// reply are not run.
func (r *run) reportResult(ctx context.Context, a protocol.Action, command string, res env.Result, interrupted bool) error {
	text, err := r.renderObservation(res, interrupted)
	if err != nil {
		return err
	}
	if command != a.Command {
		text = fmt.Sprintf("The user changed the command before it ran. This ran instead:\n%s\n%s", fenced(command), text)
	}
	m := r.protocol.ResultMessage(a, text)
	if interrupted {
		return newFeedback("UserInterruption", trajectories.CauseObservation, m)
	}
	if err := r.addOutputImages(ctx, &m, res); err != nil {
		return err
	}
	if err := r.addMessages(trajectories.CauseObservation, m); err != nil {
		return err
	}
	r.addCommandSummary(command, res.ExitCode, res.Output, r.exception(res, interrupted))
	return nil
}

// renderObservation renders a command's result with the observation template.
func (r *run) renderObservation(res env.Result, interrupted bool) (string, error) {
	return r.renderResult(res, r.exception(res, interrupted))
}

func (r *run) renderResult(res env.Result, exception string) (string, error) {
	vars := merge(r.variables(), observationValues(r.cfg.Observation.shorten(res), res, exception))
	return r.templates[observationPrompt].render(vars)
}

// limitOutput returns x with at most limit bytes of output: half from the
// start, the rest from the end. 0 means no limit.
func limitOutput(x trajectories.Execution, limit int) trajectories.Execution {
	if limit == 0 || len(x.Output) <= limit {
		return x
	}
	head, tail := x.Output, x.Output
	if x.Truncated {
		head, tail = x.Output[:x.Head], x.Output[x.Head:]
	}
	head = head[:min(len(head), limit/2)]
	tail = tail[len(tail)-min(len(tail), limit-len(head)):]
	x.Output, x.Head, x.Truncated = slices.Concat(head, tail), len(head), true
	return x
}

func executionRecord(script string, start time.Time, res env.Result, exception string) trajectories.Execution {
	x := trajectories.Execution{
		Command: script, Output: res.Output, Truncated: res.Truncated,
		Bytes: res.Bytes, Chars: res.Chars, ExitCode: res.ExitCode, Signal: res.Signal,
		Start: start, Duration: trajectories.Seconds(res.Duration),
		TimedOut: res.TimedOut, Killed: res.Killed, Survivors: res.Survivors, KilledEarlierCommands: res.KilledEarlier,
		OOMKilled: max(res.OOMKilled, 0), Exception: exception,
	}
	if res.Truncated {
		x.Head = res.Head
	}
	for _, p := range res.Background {
		x.Background = append(x.Background, trajectories.Process{PID: p.PID, Name: p.Name})
	}
	return x
}
