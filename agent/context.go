package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// ContextPolicy is asked before each call of the model what of the conversation
// is sent, or whether it goes on at all. It serves any number of attempts at
// once, and has no state of one: the history tells it all.
type ContextPolicy interface {
	// Fit returns the messages to send; nil are all of them. Others than those
	// of the history go on record, so that it can be told later what the model
	// saw. A *model.Error of the status ContextWindowExceeded ends the attempt
	// with what it has.
	Fit(ctx context.Context, h History) ([]model.Message, error)
}

// History is a conversation before a call.
type History struct {
	// Messages are all of it. They are not to be changed.
	Messages []model.Message
	// Usage is what the provider counted of the last call, its last request
	// alone, and Counted how many of the messages there were with its reply. Both
	// are 0 before there is such a count.
	Usage   model.Usage
	Counted int
}

// Window ends an attempt when a prompt and the reply to it may be more than the
// model takes, before the provider says so. It is the ContextPolicy that sends
// everything.
type Window struct {
	// Tokens is the size of the window, Reserve what of it is for the reply.
	Tokens, Reserve int64
	// Estimate is about how many tokens messages have that nobody counted yet.
	Estimate func([]model.Message) int64
}

var _ ContextPolicy = Window{}

// Fit implements ContextPolicy.
func (w Window) Fit(_ context.Context, h History) ([]model.Message, error) {
	counted := h.counted()
	estimated := w.Estimate(h.Messages[h.Counted:])
	if counted+estimated <= w.Tokens-w.Reserve {
		return nil, nil
	}
	return nil, &model.Error{
		Status: model.ContextWindowExceeded,
		Hint:   "model.context_window says how much the model takes, model.context_reserve what of that is for its reply",
		Err: fmt.Errorf("the next prompt would have about %d tokens (%d counted by the provider, %d estimated); of the %d of the context window %d are for the reply",
			counted+estimated, counted, estimated, w.Tokens, w.Reserve),
	}
}

// counted are the tokens of the messages that the provider has counted. Thinking
// that is in no message is not sent again.
func (h History) counted() int64 {
	if h.Counted == 0 {
		return 0
	}
	n := h.Usage.Prompt + h.Usage.Completion
	if m := h.Messages[h.Counted-1]; len(m.Kept) == 0 && m.Reasoning == "" {
		n -= h.Usage.Reasoning
	}
	return n
}

// fit asks the policy what to send, and records what is not the whole history.
func (r *run) fit(ctx context.Context) ([]model.Message, error) {
	if r.cfg.Context == nil {
		return r.messages, nil
	}
	h := History{Messages: r.messages[:len(r.messages):len(r.messages)], Usage: r.counted.usage, Counted: r.counted.messages}
	sent, err := r.cfg.Context.Fit(ctx, h)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case sent == nil:
		return r.messages, nil
	case len(sent) == 0:
		return nil, errors.New("the context policy sends nothing")
	}
	parts := r.partsOf(sent)
	if len(parts) == 1 && parts[0].Message == nil && len(sent) == len(r.messages) {
		return sent, nil
	}
	_, err = r.Recorder.Append(trajectories.TypeContext, trajectories.Context{Sent: parts})
	return sent, err
}

// partsOf says of messages which of them are in the history, in their order.
func (r *run) partsOf(sent []model.Message) []trajectories.ContextPart {
	var parts []trajectories.ContextPart
	next := 0 // in the history
	for _, m := range sent {
		at := next
		for at < len(r.messages) && !reflect.DeepEqual(r.messages[at], m) {
			at++
		}
		if at == len(r.messages) { // it is new
			parts = append(parts, trajectories.ContextPart{Message: &m})
			continue
		}
		if n := len(parts); at == next && n > 0 && parts[n-1].Message == nil {
			parts[n-1].To = r.records[at]
		} else {
			parts = append(parts, trajectories.ContextPart{From: r.records[at], To: r.records[at]})
		}
		next = at + 1
	}
	return parts
}

// count is what a provider counted of a call.
type count struct {
	usage    model.Usage
	messages int
}

// countOf takes in what the provider counted of the request that was answered,
// up to so many messages. Some servers count nothing.
func (r *run) countOf(u model.Usage, messages int) {
	if u.Prompt > 0 {
		r.counted = count{u, messages}
	}
}
