package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	client "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
)

// kept is the form of model.Message.Kept here; others have others.
type kept struct {
	OpenAI *details `json:"openai,omitempty"`
}

// details are what a server wants back as it came: thinking in parts, signed or
// encrypted, as OpenRouter has it. The client library does not know them.
type details struct {
	Reasoning json.RawMessage `json:"reasoning_details"`
}

// keep is what of an answer goes back with it; nil where there is nothing.
func keep(reasoning json.RawMessage) (json.RawMessage, error) {
	reasoning = bytes.TrimSpace(reasoning)
	if len(reasoning) == 0 || reasoning[0] != '[' || string(reasoning) == "[]" {
		return nil, nil
	}
	raw, err := json.Marshal(kept{OpenAI: &details{Reasoning: reasoning}})
	if err != nil {
		return nil, broken("read answer: %w", err)
	}
	return raw, nil
}

// keptIn is what goes back with a message, if anything does.
func keptIn(m model.Message) (details, bool) {
	var k kept
	if m.Role != model.Assistant || len(m.Kept) == 0 || json.Unmarshal(m.Kept, &k) != nil || k.OpenAI == nil {
		return details{}, false
	}
	return *k.OpenAI, present(k.OpenAI.Reasoning)
}

// withKept is the messages of a request with what was kept of them, by their
// places; nil where there is nothing, and the client library's form will do.
func withKept(messages []client.ChatCompletionMessage, back map[int]details) (json.RawMessage, error) {
	if len(back) == 0 {
		return nil, nil
	}
	all := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("write message: %w", err)
		}
		if d, ok := back[i]; ok {
			object := map[string]json.RawMessage{}
			if err := json.Unmarshal(raw, &object); err != nil {
				return nil, fmt.Errorf("write message: %w", err)
			}
			object["reasoning_details"] = d.Reasoning
			if raw, err = json.Marshal(object); err != nil {
				return nil, fmt.Errorf("write message: %w", err)
			}
		}
		all[i] = raw
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	return raw, nil
}
