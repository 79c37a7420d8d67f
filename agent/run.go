package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// run is the state of one session: what the model has been told, and what it
// has cost so far.
type run struct {
	*Agent
	Session
	info        env.Info
	abilities   Abilities
	asking      Attempt // what tools know of this
	messages    []model.Message
	records     []int // of the messages, in the journal
	causes      []trajectories.Cause
	view        trajectories.View // what of them the model is shown
	counted     count
	scale       float64 // tokens by estimated tokens, at the last count
	sizes       []int64 // estimates of what is shown, each with all before it
	replies     int     // among the messages
	facts       []fact
	tailSaid    string // the newest
	overlong    bool   // the last compaction left more than the limit
	extracted   bool   // that a summary is missing was said
	long        bool   // that a prompt is longer than the limit was said
	clock       *clock
	times       trajectories.Times // of this session
	newest      model.Reply        // for those who watch
	steps       int
	usage       model.Usage
	cost        model.Cost
	badRow      int // format errors in a row
	limits      Limits
	handedIn    *protocol.Action // that the newest submission came of
	images      int              // shown so far, imagesBytes in all
	imagesBytes int
	// What is known of the repository; tree is nil before it was looked for.
	tree      *worktree.Tree
	states    states
	returned  bool   // a submission that does not apply was given back
	submitted string // the tree that the submission makes; empty if not known
	warnings  []string
}

// begin says the system and instance prompts, where they were not said before.
func (r *run) begin(ctx context.Context) error {
	if r.hasPast() {
		return r.goOn(ctx)
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
	told := prompted(model.User, task)
	if err := r.illustrate(ctx, &told.Message); err != nil {
		return err
	}
	return r.say(prompted(model.System, system), told)
}

func prompted(role model.Role, text string) trajectories.Message {
	return trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: trajectories.CausePrompt}
}

// say appends to the history and records it.
func (r *run) say(messages ...trajectories.Message) error {
	for _, m := range messages {
		rec, err := r.record(trajectories.TypeMessage, m)
		if err != nil {
			return err
		}
		r.remember(rec.ID, m)
	}
	return nil
}

// remember takes in a message that is on record.
func (r *run) remember(record int, m trajectories.Message) {
	r.messages, r.records, r.causes = append(r.messages, m.Message), append(r.records, record), append(r.causes, m.Cause)
	r.view.Add(record, m.Message)
	if m.Cause == trajectories.CauseReply {
		r.replies++
	}
}

func (r *run) variables() map[string]any {
	return r.cfg.variables(r.Task, r.info, r.abilities, r.steps, float64(r.total().Cost), r.clock.worked().Seconds())
}

func (r *run) checkLimits() error {
	if err := r.checkOwn(); err != nil {
		return err
	}
	if r.Allow != nil {
		return r.Allow()
	}
	return nil
}

// checkOwn is about the limits of the attempt alone.
func (r *run) checkOwn() error {
	if limitReached(r.limits, r.total().Steps, r.total().Cost) {
		return ErrLimitsExceeded
	}
	if limit := r.cfg.wallTime(); limit > 0 && r.clock.worked() >= limit {
		return ErrTimeExceeded
	}
	return nil
}

// checkSpent is asked after a call that is no step.
func (r *run) checkSpent() error {
	if err := r.checkOwn(); err != nil {
		return err
	}
	if r.Afford != nil {
		return r.Afford()
	}
	return nil
}

func (c Config) wallTime() time.Duration {
	return time.Duration(c.WallTimeLimit * float64(time.Second))
}

// query asks the model and records the call, also one that failed.
func (r *run) query(ctx context.Context) (model.Reply, error) {
	messages, err := r.fit(ctx)
	if err != nil {
		return model.Reply{}, err
	}
	within, done := r.Talk.begin(ctx)
	defer done()
	start := time.Now()
	beside, over := context.WithCancel(within)
	defer over() // also when the provider panics
	state := r.takeState(beside)
	reply, err := r.Model.Query(r.asks(within), messages)
	r.newest = reply
	call := callRecord(start, reply, err)
	call.Tree = state()
	if err == nil {
		r.countOf(lastUsage(call), len(r.view.Messages())+1)
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
	case err != nil && errors.Is(context.Cause(within), errHalted):
		err = &Feedback{Reason: "UserInterruption"} // what to tell the model is asked before the next call
	}
	return reply, err
}

// execute runs a command and records what it did; halted says that somebody
// interrupted it. own says that a person wrote it.
func (r *run) execute(ctx context.Context, script string, own bool) (res env.Result, halted bool, err error) {
	within, done := r.Talk.begin(ctx)
	defer done()
	start := time.Now()
	command, shown := r.shownTo(r.Command(script), own)
	command, lost := r.tooled(command)
	res, err = r.Environment.Execute(within, command)
	halted = err != nil && ctx.Err() == nil && errors.Is(context.Cause(within), errHalted)
	x := executionRecord(script, start, kept(res, r.cfg.JournalOutput), r.exception(res, halted))
	x.Person = own
	r.states.left = len(res.Background) > 0
	_, recErr := r.record(trajectories.TypeExecution, x)
	recErr = errors.Join(lost(), recErr)
	shown(x, res)
	switch _, lost := errors.AsType[*env.Error](err); {
	case halted && !lost:
		err = nil
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return res, halted, errors.Join(err, recErr)
}

// executeOnce runs a command that nobody interrupts.
func (r *run) executeOnce(ctx context.Context, script string) (env.Result, error) {
	res, _, err := r.execute(ctx, script, false)
	return res, err
}

// exception is what the model is told of a command beside its output and code.
func (r *run) exception(res env.Result, halted bool) string {
	if halted {
		return "The user interrupted the command, which was killed with everything it had started."
	}
	return exception(res, r.cfg.Timeout)
}

// executeAgain runs a command that is on record.
func (r *run) executeAgain(ctx context.Context, script string) (env.Result, error) {
	res, err := r.Environment.Execute(ctx, r.Command(script))
	if err != nil {
		err = orCause(ctx, err)
	}
	return res, err
}

// Command is how an agent has the text of an action run.
func (a *Agent) Command(script string) env.Command {
	return env.Command{Script: script, Timeout: a.cfg.Timeout, OutputLimit: a.cfg.outputLimit(), Markers: Markers}
}

// outputLimit is how many bytes the sandbox must keep so that head and tail of
// an observation are whole at four bytes a character, and the journal has its due.
func (c Config) outputLimit() int {
	o := c.Observation
	limit := max(env.DefaultOutputLimit, c.JournalOutput, 4*o.MaxChars, 8*max(o.HeadChars, o.TailChars))
	if o.Keep == KeepTail {
		limit = max(limit, 2*o.MaxBytes)
	}
	return limit
}

// observe tells the model what its command did. After an interruption nothing
// more of the reply is run.
func (r *run) observe(ctx context.Context, a protocol.Action, res env.Result, halted bool) error {
	text, err := r.observation(res, halted)
	if err != nil {
		return err
	}
	m := trajectories.Message{Message: r.protocol.Answer(a, text), Cause: trajectories.CauseObservation}
	if halted {
		return &Feedback{Reason: "UserInterruption", Messages: []trajectories.Message{m}}
	}
	if err := r.show(ctx, &m.Message, res); err != nil {
		return err
	}
	if err := r.say(m); err != nil {
		return err
	}
	r.learn(a.Command, res.ExitCode, res.Output, r.exception(res, halted))
	return nil
}

// observation is what a command did, in the words of the template.
func (r *run) observation(res env.Result, halted bool) (string, error) {
	vars := merged(r.variables(), observed(r.cfg.Observation.look(res), res, r.exception(res, halted)))
	return r.templates.observation.render(vars)
}

// kept is a result of which at most limit bytes of output are kept: half of them
// of its beginning, and the others of its end. 0 is no limit.
func kept(res env.Result, limit int) env.Result {
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
		TimedOut: res.TimedOut, Killed: res.Killed, Survivors: res.Survivors, Collateral: res.Collateral,
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
