package agent

import (
	"fmt"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

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
		Status: model.ContextWindowExceeded,
		Hint: "model.context_window is the size of the context window, " +
			"model.context_reserve the part of it for the reply",
		Err: fmt.Errorf("the next prompt would have about %d tokens (%d counted by the provider, %d estimated); "+
			"the context window has %d tokens, %d of them reserved for the reply",
			counted+estimated, counted, estimated, w.Tokens, w.Reserve),
	}
}

// nextPrompt returns the messages of the next call: the compacted conversation,
// with the rendered tail at its end. It records the tail.
func (r *run) nextPrompt() ([]model.Message, error) {
	messages := r.history.Messages()
	if err := r.cfg.Window.check(messages, r.counted); err != nil {
		return nil, err
	}
	tail, err := r.renderTail()
	if err != nil || tail == "" {
		return messages, err
	}
	records := r.history.Records()
	all := trajectories.ContextPart{From: records[0], To: records[len(records)-1]}
	c := trajectories.PromptContext{Sent: []trajectories.ContextPart{all}, Tail: tail}
	_, err = r.record(trajectories.TypeContext, c)
	return r.history.SentMessages(&c), err
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
