package agent

import (
	"context"
	"errors"
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
	toolAttempt      Attempt                       // the attempt as tools see it
	history          trajectories.ConversationView // all messages, and those that the model is sent
	causes           []trajectories.Cause          // of all messages
	counted          tokenCount
	scale            float64 // provider tokens per estimated token, at the last count
	replyCount       int     // number of replies in the history
	commandSummaries []commandSummary
	lastTail         string // last rendered tail
	stillTooLong     bool   // the last compaction left more tokens than the limit
	warnedExtracts   bool   // warnOfExtracts has warned
	warnedLength     bool   // warnOfLength has warned
	clock            *clock
	times            trajectories.Times // of this session
	lastReply        model.Reply        // for events
	steps            int
	usage            model.Usage
	cost             model.Cost
	formatErrors     int // consecutive format errors
	limits           Limits
	submitAction     *protocol.Action // the action of the last submission
	imageCount       int              // images sent so far
	imageBytes       int              // their total size
	// tree is nil until the repository is opened, and with SkipWorktree.
	tree          *worktree.Tree
	hashSchedule  hashSchedule
	patchReturned bool   // a patch that does not apply was sent back to the model
	submittedTree string // hash of the tree with the submitted patch applied; empty if unknown
	warnings      []string
}

// start adds the system and instance prompts to the history, or resumes the
// last reply.
func (r *run) start(ctx context.Context) error {
	if r.isResumed() {
		return r.resumeLastReply(ctx)
	}
	vars := r.variables()
	system, err := r.templates.system.render(vars)
	if err != nil {
		return err
	}
	task, err := r.templates.instance.render(vars)
	if err != nil {
		return err
	}
	if r.Instructions != "" {
		task = strings.TrimRight(task, "\n") + "\n\n" + r.Instructions
	}
	taskPrompt := promptMessage(model.User, task)
	if err := r.addTaskImages(ctx, &taskPrompt.Message); err != nil {
		return err
	}
	return r.addMessages(promptMessage(model.System, system), taskPrompt)
}

func promptMessage(role model.Role, text string) trajectories.Message {
	return trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: trajectories.CausePrompt}
}

// addMessages records messages and adds them to the history.
func (r *run) addMessages(messages ...trajectories.Message) error {
	for _, m := range messages {
		rec, err := r.record(trajectories.TypeMessage, m)
		if err != nil {
			return err
		}
		r.addToHistory(rec.ID, m)
	}
	return nil
}

// addToHistory adds a recorded message to the history.
func (r *run) addToHistory(record int, m trajectories.Message) {
	r.causes = append(r.causes, m.Cause)
	r.history.Add(record, m.Message)
	switch m.Cause {
	case trajectories.CauseReply:
		r.replyCount++
	case trajectories.CauseInterruption, trajectories.CauseSteer, trajectories.CauseFollowUp:
		r.formatErrors = 0 // the user has seen them
	}
}

func (r *run) variables() map[string]any {
	return r.cfg.variables(r.Task, r.info, r.capabilities, r.steps, float64(r.total().Cost), r.clock.elapsed().Seconds())
}

// checkLimits checks the attempt's limits before a step and reserves a model call
// from the budget.
func (r *run) checkLimits() error {
	if err := r.checkAttemptLimits(); err != nil {
		return err
	}
	if r.ReserveCall != nil {
		return r.ReserveCall()
	}
	return nil
}

// checkAttemptLimits checks the attempt's limits, but not the run's budget.
func (r *run) checkAttemptLimits() error {
	if limitReached(r.limits, r.total().Steps, r.total().Cost) {
		return ErrLimitsExceeded
	}
	if limit := r.cfg.wallTime(); limit > 0 && r.clock.elapsed() >= limit {
		return ErrTimeExceeded
	}
	return nil
}

// checkLimitsAfterSummary checks the attempt's limits and the run's budget
// after a call that is not a step.
func (r *run) checkLimitsAfterSummary() error {
	if err := r.checkAttemptLimits(); err != nil {
		return err
	}
	if r.CheckBudget != nil {
		return r.CheckBudget()
	}
	return nil
}

func (c Config) wallTime() time.Duration {
	return time.Duration(c.WallTimeLimit * float64(time.Second))
}

// query calls the model and records the call, even if it failed.
func (r *run) query(ctx context.Context) (model.Reply, error) {
	messages, err := r.nextPrompt()
	if err != nil {
		return model.Reply{}, err
	}
	callCtx, done := r.Inbox.callContext(ctx)
	defer done()
	start := time.Now()
	hashCtx, cancelHash := context.WithCancel(callCtx)
	defer cancelHash() // also when Model.Query panics
	treeHash := r.startTreeHash(hashCtx)
	reply, err := r.Model.Query(r.withCallEvents(callCtx), messages)
	r.lastReply = reply
	call := callRecord(start, reply, err)
	call.Tree = treeHash()
	if err == nil {
		r.updateCount(lastUsage(call), len(r.history.Messages())+1)
	}
	r.steps++
	r.usage = r.usage.Add(reply.Usage)
	r.cost += reply.Cost
	if _, recErr := r.record(trajectories.TypeCall, call); recErr != nil {
		return reply, errors.Join(err, recErr)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && errors.Is(context.Cause(callCtx), errUserInterrupt):
		err = &Feedback{Reason: "UserInterruption"} // before the next call, readInbox gets the text for the model
	}
	return reply, err
}

// execute runs a command and records its result. interrupted reports that the
// user interrupted it. byUser marks a command that the user wrote.
func (r *run) execute(ctx context.Context, script string, byUser bool) (res env.Result, interrupted bool, err error) {
	callCtx, done := r.Inbox.callContext(ctx)
	defer done()
	start := time.Now()
	command, publishResult := r.withOutputEvents(r.Command(script), byUser)
	command, toolErr := r.withTools(command)
	res, err = r.Environment.Execute(callCtx, command)
	interrupted = err != nil && ctx.Err() == nil && errors.Is(context.Cause(callCtx), errUserInterrupt)
	x := executionRecord(script, start, limitOutput(res, r.cfg.JournalOutput), r.exception(res, interrupted))
	x.ByUser = byUser
	r.hashSchedule.processesLeft = len(res.Background) > 0
	_, recErr := r.record(trajectories.TypeExecution, x)
	recErr = errors.Join(toolErr(), recErr)
	publishResult(x, res)
	switch _, isEnvErr := errors.AsType[*env.Error](err); {
	case interrupted && !isEnvErr:
		err = nil
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return res, interrupted, errors.Join(err, recErr)
}

// executeAndRecord runs a command and records its result. It does not report
// whether the user interrupted the command.
func (r *run) executeAndRecord(ctx context.Context, script string) (env.Result, error) {
	res, _, err := r.execute(ctx, script, false)
	return res, err
}

// exception describes for the model how a command failed, beyond its exit code.
func (r *run) exception(res env.Result, interrupted bool) string {
	if interrupted {
		return "The user interrupted the command, which was killed with everything it had started."
	}
	return exception(res, r.cfg.Timeout)
}

// executeUnrecorded runs a command that an earlier session has recorded
// already.
func (r *run) executeUnrecorded(ctx context.Context, script string) (env.Result, error) {
	res, err := r.Environment.Execute(ctx, r.Command(script))
	if err != nil {
		err = causeOrErr(ctx, err)
	}
	return res, err
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

// reportResult sends a command's result to the model. After an interruption the
// remaining actions of the reply are not run.
func (r *run) reportResult(ctx context.Context, a protocol.Action, res env.Result, interrupted bool) error {
	text, err := r.renderObservation(res, interrupted)
	if err != nil {
		return err
	}
	m := trajectories.Message{Message: r.protocol.ResultMessage(a, text), Cause: trajectories.CauseObservation}
	if interrupted {
		return &Feedback{Reason: "UserInterruption", Messages: []trajectories.Message{m}}
	}
	if err := r.addOutputImages(ctx, &m.Message, res); err != nil {
		return err
	}
	if err := r.addMessages(m); err != nil {
		return err
	}
	r.addCommandSummary(a.Command, res.ExitCode, res.Output, r.exception(res, interrupted))
	return nil
}

// renderObservation renders a command's result with the observation template.
func (r *run) renderObservation(res env.Result, interrupted bool) (string, error) {
	vars := merge(r.variables(), observationValues(r.cfg.Observation.shorten(res), res, r.exception(res, interrupted)))
	return r.templates.observation.render(vars)
}

// limitOutput returns res with at most limit bytes of output: half from the
// start, the rest from the end. 0 means no limit.
func limitOutput(res env.Result, limit int) env.Result {
	if limit == 0 || len(res.Output) <= limit {
		return res
	}
	head, tail := res.Output, res.Output
	if res.Truncated {
		head, tail = res.Output[:res.Head], res.Output[res.Head:]
	}
	head = head[:min(len(head), limit/2)]
	tail = tail[len(tail)-min(len(tail), limit-len(head)):]
	res.Output, res.Head, res.Truncated = slices.Concat(head, tail), len(head), true
	return res
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
