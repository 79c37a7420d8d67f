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

// History is a conversation before a call, as compactions have left it.
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

// fit asks the policy what to send, puts the tail at its end, and records what is
// not all that the model is shown.
func (r *run) fit(ctx context.Context) ([]model.Message, error) {
	sent, parts, err := r.picked(ctx)
	if err != nil {
		return nil, err
	}
	tail, err := r.tail()
	if err != nil {
		return nil, err
	}
	if parts == nil && tail == "" {
		return sent, nil
	}
	if parts == nil {
		parts = []trajectories.ContextPart{{From: r.records[0], To: r.records[len(r.records)-1]}}
	}
	c := trajectories.Context{Sent: parts, Tail: tail}
	if tail != "" {
		sent = r.view.Send(&c)
	}
	_, err = r.record(trajectories.TypeContext, c)
	return sent, err
}

// picked is what the policy sends, and what of the conversation that is; no parts
// are all of it.
func (r *run) picked(ctx context.Context) ([]model.Message, []trajectories.ContextPart, error) {
	h := r.history()
	if r.cfg.Context == nil {
		return h.Messages, nil, nil
	}
	sent, err := r.cfg.Context.Fit(ctx, h)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, err
	case sent == nil:
		return h.Messages, nil, nil
	case len(sent) == 0:
		return nil, nil, errors.New("the context policy sends nothing")
	}
	parts := r.partsOf(sent, h.Messages)
	if len(parts) == 1 && parts[0].Message == nil && len(sent) == len(h.Messages) {
		parts = nil
	}
	return sent, parts, nil
}

// partsOf says of messages which of them are shown anyway, in their order.
func (r *run) partsOf(sent, shown []model.Message) []trajectories.ContextPart {
	var parts []trajectories.ContextPart
	next := 0 // of those that are shown
	for _, m := range sent {
		at := next
		for at < len(shown) && !reflect.DeepEqual(shown[at], m) {
			at++
		}
		if at == len(shown) { // it is new
			parts = append(parts, trajectories.ContextPart{Message: &m})
			continue
		}
		from, to := r.view.Span(at)
		if n := len(parts); at == next && n > 0 && parts[n-1].Message == nil {
			parts[n-1].To = to
		} else {
			parts = append(parts, trajectories.ContextPart{From: from, To: to})
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
