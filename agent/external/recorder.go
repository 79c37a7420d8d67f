package external

import (
	"slices"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// recorder records exchanges, and derives from them the messages, calls and commands of
// the attempt and of the agent's subagents. The main thread is the first conversation that
// offers tools or, if none does, the first that begins with the task. Requests of no thread
// are side calls, which only count.
type recorder struct {
	attempt *agent.Attempt
	tools   bool
	task    string

	mu       sync.Mutex
	calls    int
	answered bool
	lastErr  *model.Error    // of the last call of the main thread, or of any without an answer
	contents map[string]bool // digests of recorded contents
	main     thread
	// pending has the reply to the first request of main, if that offers no tools. It is
	// recorded with the next request of main, unless a conversation that offers tools
	// becomes main.
	pending  *bridge.Exchange
	children []*child
	roots    []root  // the newest last
	spawns   []spawn // the newest last
}

func newRecorder(a *agent.Attempt, tools bool, task string) *recorder {
	return &recorder{attempt: a, tools: tools, task: normalize(task), contents: map[string]bool{}, main: thread{journal: a}}
}

// providerError returns why the provider ended the attempt, if it did.
func (r *recorder) providerError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastErr == nil {
		return nil
	}
	return r.lastErr
}

// record is a bridge.Config.Record.
func (r *recorder) record(x bridge.Exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.IsCount {
		_, err := r.attempt.Append(trajectories.TypeExchange, r.exchangeRecord(x, nil))
		return err
	}
	r.calls++
	if r.takesMain(x) {
		r.pending = nil
		r.main.restart()
	}
	t, err := r.threadOf(x)
	if err != nil {
		return err
	}
	r.noteFailure(x, t == &r.main)
	if _, err := r.attempt.Append(trajectories.TypeExchange, r.exchangeRecord(x, t)); err != nil {
		return err
	}
	if t != &r.main {
		if err := r.recordSpent(t, x); err != nil {
			return err
		}
	}
	if t == nil {
		r.keepRoot(x)
		return nil
	}
	return r.recordStep(t, x)
}

// takesMain reports whether x begins the first conversation that offers tools, after one
// that began with the task and has ended: a call for a title or the like.
func (r *recorder) takesMain(x bridge.Exchange) bool {
	_, isChild := identityOf(x.Headers)
	isNew := !slices.ContainsFunc(x.Messages, func(m model.Message) bool { return m.Role == model.Assistant })
	return x.HasTools && isNew && !isChild && !r.main.offersTools && !r.main.isEmpty() && r.main.replied.IsZero()
}

// recordPending records the reply to the first request of the main thread.
func (r *recorder) recordPending() error {
	x := r.pending
	if x == nil {
		return nil
	}
	r.pending = nil
	return r.recordReply(&r.main, *x)
}

// recordStep records an exchange of a thread as its next step.
func (r *recorder) recordStep(t *thread, x bridge.Exchange) error {
	if t == &r.main {
		if err := r.recordPending(); err != nil {
			return err
		}
	}
	if err := recordPrompt(t, x); err != nil {
		return err
	}
	if err := r.recordCall(t, callOf(x), x.Reply.Tokens); err != nil {
		return err
	}
	if x.Err != nil && len(x.Reply.Message.Content) == 0 && len(x.Reply.Message.ToolCalls) == 0 {
		return nil
	}
	if t == &r.main && t.replied.IsZero() && !x.HasTools && !r.tools {
		r.pending = &x
		return nil
	}
	return r.recordReply(t, x)
}

// noteFailure remembers the error that would end the attempt now.
func (r *recorder) noteFailure(x bridge.Exchange, isMain bool) {
	switch {
	case x.Cancelled:
	case x.Err == nil && (isMain || !r.answered):
		r.lastErr, r.answered = nil, true
	case x.Err == nil:
	case isMain || !r.answered:
		r.lastErr = asModelError(x.Err)
	}
}

// recordPrompt records the messages of a request that are new, with the commands that
// they answer, and the context if the request is not the whole conversation.
func recordPrompt(t *thread, x bridge.Exchange) error {
	fresh := t.match(x.Messages)
	for _, m := range x.Messages[fresh:] {
		rec := trajectories.Message{Message: m, Cause: t.cause(m)}
		if action, ok := t.answeredAction(m); ok {
			rec.Cause = trajectories.CauseObservation
			if err := t.recordChildren(x); err != nil {
				return err
			}
			if _, err := t.journal.Append(trajectories.TypeExecution, trajectories.Execution{
				Command: action.command, Output: []byte(m.Content), Bytes: int64(len(m.Content)), Chars: int64(len([]rune(m.Content))),
				ExitCodeUnknown: true, Start: t.replied, Duration: trajectories.Seconds(x.Start.Sub(t.replied)),
			}); err != nil {
				return err
			}
		}
		added, err := t.journal.Append(trajectories.TypeMessage, rec)
		if err != nil {
			return err
		}
		t.add(added.ID, m)
	}
	if c := t.context(); c != nil {
		_, err := t.journal.Append(trajectories.TypeContext, *c)
		return err
	}
	return nil
}

// recordReply records the reply of a thread.
func (r *recorder) recordReply(t *thread, x bridge.Exchange) error {
	m := trajectories.Message{Message: x.Reply.Message, Cause: trajectories.CauseReply, Actions: actionsOf(x.Reply.Message)}
	m.ProviderData = nil // it is in the exchange
	rec, err := t.journal.Append(trajectories.TypeMessage, m)
	if err != nil {
		return err
	}
	t.reply(rec.ID, m, x.Start.Add(x.Duration))
	r.keepSpawns(t, m.ToolCalls)
	return nil
}

func callOf(x bridge.Exchange) trajectories.Call {
	c := trajectories.Call{
		Usage: x.Reply.Usage, Cost: x.Reply.Cost, Finish: x.Reply.FinishReason, Model: x.Reply.Model,
		Start: x.Start, Duration: trajectories.Seconds(x.Duration), Waited: trajectories.Seconds(x.Reply.Waited),
		RequestCount: x.Reply.Tries, Requests: trajectories.RecordRequests(x.Reply.Requests),
	}
	if x.Err != nil {
		c.Error = x.Err.Error()
	}
	return c
}
