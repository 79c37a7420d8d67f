package external

import (
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// recorder records exchanges, and derives from them the messages, calls and commands of
// the attempt. The main thread is the conversation that begins with the task. All other
// requests are side calls, which only count.
type recorder struct {
	attempt *agent.Attempt
	tools   bool
	task    string

	mu       sync.Mutex
	calls    int
	answered bool
	lastErr  *model.Error    // of the last call of the main thread, or of any without an answer
	contents map[string]bool // digests of recorded contents
	thread   thread
}

func newRecorder(a *agent.Attempt, tools bool, task string) *recorder {
	return &recorder{attempt: a, tools: tools, task: normalize(task), contents: map[string]bool{}}
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
	r.calls++
	isMain := r.isMain(x)
	r.noteFailure(x, isMain)
	if _, err := r.attempt.Append(trajectories.TypeExchange, r.exchangeRecord(x, isMain)); err != nil {
		return err
	}
	if !isMain {
		return r.attempt.RecordChildCall(trajectories.ChildCall{
			Usage: x.Reply.Usage, Cost: x.Reply.Cost, Start: x.Start,
			Duration: trajectories.Seconds(x.Duration), Waited: trajectories.Seconds(x.Reply.Waited),
		})
	}
	if err := r.recordPrompt(x); err != nil {
		return err
	}
	if err := r.attempt.RecordCall(callOf(x)); err != nil {
		return err
	}
	if x.Err != nil && len(x.Reply.Message.Content) == 0 && len(x.Reply.Message.ToolCalls) == 0 {
		return nil
	}
	return r.recordReply(x)
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

// isMain reports whether an exchange belongs to the main thread.
func (r *recorder) isMain(x bridge.Exchange) bool {
	if r.tools && !x.HasTools {
		return false
	}
	if !r.thread.isEmpty() {
		return r.thread.continues(x.Messages)
	}
	for _, m := range x.Messages {
		if m.Role == model.User && contains(m.Content, r.task) {
			return true
		}
	}
	return false
}

// recordPrompt records the messages of a request that are new, with the commands that
// they answer, and the context if the request is not the whole conversation.
func (r *recorder) recordPrompt(x bridge.Exchange) error {
	fresh := r.thread.match(x.Messages)
	for _, m := range x.Messages[fresh:] {
		rec := trajectories.Message{Message: m, Cause: r.thread.cause(m)}
		if action, ok := r.thread.answeredAction(m); ok {
			rec.Cause = trajectories.CauseObservation
			if _, err := r.attempt.Append(trajectories.TypeExecution, trajectories.Execution{
				Command: action, Output: []byte(m.Content), Bytes: int64(len(m.Content)), Chars: int64(len([]rune(m.Content))),
				ExitCodeUnknown: true, Start: r.thread.replied, Duration: trajectories.Seconds(x.Start.Sub(r.thread.replied)),
			}); err != nil {
				return err
			}
		}
		added, err := r.attempt.Append(trajectories.TypeMessage, rec)
		if err != nil {
			return err
		}
		r.thread.add(added.ID, m)
	}
	if c := r.thread.context(); c != nil {
		_, err := r.attempt.Append(trajectories.TypeContext, *c)
		return err
	}
	return nil
}

// recordReply records the reply of the main thread.
func (r *recorder) recordReply(x bridge.Exchange) error {
	m := trajectories.Message{Message: x.Reply.Message, Cause: trajectories.CauseReply, Actions: actionsOf(x.Reply.Message)}
	m.ProviderData = nil // it is in the exchange
	rec, err := r.attempt.Append(trajectories.TypeMessage, m)
	if err != nil {
		return err
	}
	r.thread.reply(rec.ID, m, x.Start.Add(x.Duration))
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
