package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// query calls the model and records the call, even if it failed.
func (r *run) query(ctx context.Context) (model.Reply, error) {
	messages, err := r.nextPrompt()
	if err != nil {
		return model.Reply{}, r.firstCallError(err, messages)
	}
	callCtx, done := r.Inbox.callContext(ctx)
	defer done()
	start := time.Now()
	hashCtx, cancelHash := context.WithCancel(callCtx)
	defer cancelHash() // also when Model.Query panics
	treeHash := r.startTreeHash(hashCtx)
	reply, err := r.Model.Query(r.withCallEvents(callCtx), messages)
	err = r.firstCallError(err, messages)
	call := callRecord(start, reply, err)
	call.Tokens = r.attempt.RecordTokens(reply.Tokens)
	call.Tree = treeHash()
	if err == nil {
		r.answered = true
		r.updateCount(lastUsage(call), len(r.attempt.Conversation().Messages())+1)
	}
	if _, recErr := r.record(trajectories.TypeCall, call); recErr != nil {
		return reply, errors.Join(err, recErr)
	}
	return reply, callError(ctx, callCtx, err)
}

// callError returns the error of a model call: the cause if ctx has ended, Feedback if the
// user has interrupted the call, else err. readInbox gets the user's text for the model
// before the next call.
func callError(ctx, callCtx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(callCtx), errUserInterrupt):
		return &Feedback{Reason: "UserInterruption"}
	}
	return err
}

// handleCallError handles the errors of a model call that end a step but not the attempt.
func (r *run) handleCallError(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*model.Error](err)
	switch {
	case !ok || ctx.Err() != nil:
		return err
	case failed.Status == model.MalformedCall:
		_, err = r.parseMalformed(failed)
		return err
	}
	return r.compactRejected(ctx, failed)
}

// withCallEvents reports that a model call starts. It returns the context for
// the call, which reports waits for the provider and publishes the reply as it
// is streamed.
func (r *run) withCallEvents(ctx context.Context) context.Context {
	step := r.steps() + 1
	r.notify(events.PhaseStarted{Phase: events.PhaseThinking, Step: step})
	ctx = model.WithPause(ctx, func() func() {
		r.notify(events.PhaseStarted{Phase: events.PhaseWaiting})
		return func() { r.notify(events.PhaseStarted{Phase: events.PhaseThinking}) }
	})
	if onDelta := r.Events.DeltaFunc(step); onDelta != nil {
		ctx = model.WithDeltas(ctx, onDelta)
	}
	return ctx
}

// callRecord returns the record of a model call.
func callRecord(start time.Time, reply model.Reply, err error) trajectories.Call {
	call := trajectories.Call{
		Usage: reply.Usage, Cost: reply.Cost, Finish: reply.FinishReason, Model: reply.Model,
		Start: start, Duration: trajectories.Seconds(time.Since(start)),
		Waited: trajectories.Seconds(reply.Waited), RequestCount: reply.Tries, Raw: reply.Raw,
		Requests: trajectories.RecordRequests(reply.Requests),
	}
	if err != nil {
		call.Error = err.Error()
	}
	return call
}

// lastUsage returns the usage of the call's last request, the one that was
// answered; without recorded requests, that of the call.
func lastUsage(c trajectories.Call) model.Usage {
	n := len(c.Requests)
	switch {
	case n == 0:
		return c.Usage
	case c.Requests[n-1].Usage == nil:
		return model.Usage{}
	}
	return *c.Requests[n-1].Usage
}

// nextPrompt returns the messages of the next call: the compacted conversation,
// with the rendered tail at its end. It records the tail.
func (r *run) nextPrompt() ([]model.Message, error) {
	messages := r.attempt.Conversation().Messages()
	if err := r.cfg.Window.check(messages, r.counted); err != nil {
		return messages, err
	}
	tail, err := r.renderTail()
	if err != nil || tail == "" {
		return messages, err
	}
	records := r.attempt.Conversation().Records()
	all := trajectories.ContextPart{From: records[0], To: records[len(records)-1]}
	c := trajectories.PromptContext{Sent: []trajectories.ContextPart{all}, Tail: tail}
	_, err = r.record(trajectories.TypeContext, c)
	return r.attempt.NextPrompt(), err
}

// TailProvider is a ToolServer that adds variables to the tail template. The
// agent calls TailVariables before each model call if there is a tail template.
// Templates may use the list .goals even if no provider sets it.
type TailProvider interface {
	TailVariables(a *Attempt) map[string]any
}

// maxTail bounds a tail, in characters.
const maxTail = 20_000

// renderTail renders the tail of the next prompt.
func (r *run) renderTail() (string, error) {
	if r.cfg.TailTemplate == "" {
		return "", nil
	}
	vars := merge(r.variables(), tailValues(r.lastErrors()))
	if t, ok := r.Tools.(TailProvider); ok && r.info.Tools {
		vars = merge(vars, t.TailVariables(&r.toolAttempt))
	}
	text, err := r.templates[tailPrompt].render(vars)
	if err != nil {
		return "", err
	}
	r.lastTail = clip(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), maxTail)
	return r.lastTail, nil
}

// ContextWindow is a model's context window. It lets an attempt end before the
// provider rejects a prompt that is too long.
type ContextWindow struct {
	// Tokens is the size of the window, Reserve the part of it for the reply.
	// If Tokens is 0, nothing is checked.
	Tokens, Reserve int64
}

// check returns an error if the messages leave no room for a reply. c is the
// provider's count for the first messages.
func (w ContextWindow) check(messages []model.Message, c tokenCount) error {
	counted := c.tokens(messages)
	estimated := model.EstimateTokens(messages[c.messages:])
	if w.Tokens == 0 || counted+estimated <= w.Tokens-w.Reserve {
		return nil
	}
	return &model.Error{
		Status:       model.ContextWindowExceeded,
		PromptTokens: counted + estimated, ContextTokens: w.Tokens,
		Hint: "model.context_window is the size of the context window, " +
			"model.context_reserve the part of it for the reply",
		Err: fmt.Errorf("the next prompt would have about %d tokens (%d counted by the provider, %d estimated); "+
			"the context window has %d tokens, %d of them reserved for the reply",
			counted+estimated, counted, estimated, w.Tokens, w.Reserve),
	}
}

// firstCallError returns the error of a call. If the first call of an attempt is too long
// although its messages are not, a setting is wrong, and the error says so: the attempt
// must not get a result. The same holds for the first call of a resumed attempt, whose
// settings may be others, if its messages fill less than half of the context window.
func (r *run) firstCallError(err error, messages []model.Message) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Status != model.ContextWindowExceeded || r.answered || r.areTooLong(messages, e) ||
		r.attempt.LastReply() != nil && (e.PromptTokens == 0 || 2*e.PromptTokens > e.ContextTokens) {
		return err
	}
	return &model.Error{
		Status: model.BadRequest, HTTPStatus: e.HTTPStatus, Err: e.Err,
		Hint: cmp.Or(e.Hint, "this is the first call, and its messages fit: check model.model_kwargs.max_tokens, "+
			"the context length that the server was started with, and the request size that a proxy allows"),
	}
}

// areTooLong reports whether the messages alone exceed the context window, by the
// server's numbers or else by an estimate.
func (r *run) areTooLong(messages []model.Message, e *model.Error) bool {
	if e.PromptTokens > 0 && e.ContextTokens > 0 {
		return e.PromptTokens > e.ContextTokens
	}
	window := cmp.Or(e.ContextTokens, r.cfg.Window.Tokens)
	return window > 0 && model.EstimateTokens(messages) > window
}

// tokenCount is the provider's token count for the last request, and the number
// of messages including its reply. Both are 0 before the first count.
type tokenCount struct {
	usage    model.Usage
	messages int
}

// tokens returns the tokens of the counted messages. Reasoning that no message
// contains is not sent again and not counted.
func (c tokenCount) tokens(messages []model.Message) int64 {
	if c.messages == 0 {
		return 0
	}
	n := c.usage.Prompt + c.usage.Completion
	if m := messages[c.messages-1]; len(m.ProviderData) == 0 && m.Reasoning == "" {
		n -= c.usage.Reasoning
	}
	return n
}

// updateCount sets the count from the usage of the last request, unless the
// server reports no usage.
func (r *run) updateCount(u model.Usage, messages int) {
	if u.Prompt > 0 {
		r.counted = tokenCount{u, messages}
	}
}

// The working tree is hashed only during model calls longer than hashDelay, so
// that short calls do not wait for it. Calls are skipped so that hashing takes
// at most about 1/hashTimeShare of the time of all calls.
var (
	hashDelay     = 250 * time.Millisecond
	hashTimeShare = 4
)

// hashSchedule decides during which model calls the working tree is hashed.
type hashSchedule struct {
	processesLeft bool // the last command left processes running, which may write at any time
	skip          int  // number of calls to skip
	backoff       int  // number of calls skipped after the last unfinished hash; 0 after a finished one
}

// maxBackoff bounds the number of calls to skip.
const maxBackoff = 31

var errAnswered = errors.New("the model has answered")

// startTreeHash starts hashing the working tree. The caller calls the returned
// function when the model has answered. That function returns the hash, or ""
// if there is none by then.
func (r *run) startTreeHash(ctx context.Context) func() string {
	none := func() string { return "" }
	if !r.RecordTreeHashes || r.tree == nil || r.tree.Base == "" || r.hashSchedule.processesLeft {
		return none
	}
	if r.hashSchedule.skip > 0 {
		r.hashSchedule.skip--
		return none
	}
	ctx, cancel := context.WithCancelCause(ctx)
	type hashResult struct {
		tree     string
		started  bool
		duration time.Duration
	}
	result, callStart := make(chan hashResult, 1), time.Now()
	go func() {
		delay := time.NewTimer(hashDelay)
		defer delay.Stop()
		select {
		case <-ctx.Done():
			result <- hashResult{}
			return
		case <-delay.C:
		}
		start := time.Now()
		tree, err := r.tree.Hash(ctx)
		if err != nil {
			tree = "" // the next command reports a lost sandbox
		}
		result <- hashResult{tree, true, time.Since(start)}
	}()
	return func() string {
		cancel(errAnswered)
		t := <-result
		switch {
		case t.tree != "":
			r.hashSchedule.backoff, r.hashSchedule.skip = 0, min(hashTimeShare*int(t.duration)/max(int(time.Since(callStart)), 1), maxBackoff)
		case t.started:
			r.hashSchedule.backoff = min(2*r.hashSchedule.backoff+1, maxBackoff)
			r.hashSchedule.skip = r.hashSchedule.backoff
		}
		return t.tree
	}
}
