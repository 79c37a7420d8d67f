package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	client "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// kept is the form of model.Message.Kept here; others have others.
type kept struct {
	OpenAI *details `json:"openai,omitempty"`
}

// details are what a server wants back as it came. The client library does not
// know any of it.
type details struct {
	// Reasoning is thinking in parts, signed or encrypted, as OpenRouter has it.
	Reasoning json.RawMessage `json:"reasoning_details,omitempty"`
	// Extra and Calls are Gemini's: signatures of thoughts, at the message and
	// at each of its calls, without which calls are refused.
	Extra json.RawMessage   `json:"extra_content,omitempty"`
	Calls []json.RawMessage `json:"calls,omitempty"`
}

// unknown are the fields of an answer's message that the client library drops.
type unknown struct {
	Reasoning string          `json:"reasoning"`         // OpenRouter, vLLM
	Details   json.RawMessage `json:"reasoning_details"` // OpenRouter
	Extra     json.RawMessage `json:"extra_content"`     // Gemini
	Calls     []struct {
		Extra json.RawMessage `json:"extra_content"`
	} `json:"tool_calls"`
}

// keep is what of an answer goes back with it; nil where there is nothing.
func (u unknown) keep() (json.RawMessage, error) {
	var d details
	if list := bytes.TrimSpace(u.Details); filled(list, '[') {
		d.Reasoning = list
	}
	if filled(u.Extra, '{') {
		d.Extra = u.Extra
	}
	for i, c := range u.Calls {
		if filled(c.Extra, '{') {
			d.Calls = append(d.Calls, make([]json.RawMessage, i+1-len(d.Calls))...)
			d.Calls[i] = c.Extra
		}
	}
	if d.Reasoning == nil && d.Extra == nil && d.Calls == nil {
		return nil, nil
	}
	raw, err := json.Marshal(kept{OpenAI: &d})
	if err != nil {
		return nil, transport.Broken("read answer: %w", err)
	}
	return raw, nil
}

// filled says that JSON is a list, or an object, with something in it.
func filled(raw json.RawMessage, begin byte) bool {
	return len(raw) > 2 && raw[0] == begin
}

// addition is what goes out with a message beside what the client library
// writes of it.
type addition struct {
	fields map[string]json.RawMessage
	calls  []json.RawMessage // extra_content of each
}

// additionTo is what was kept of a message and, where that is wanted, its
// thinking: the empty one too, for who wants it wants it everywhere.
func additionTo(m model.Message, reasoning bool) (addition, error) {
	var k kept
	if m.Role != model.Assistant {
		return addition{}, nil
	}
	if len(m.Kept) == 0 || json.Unmarshal(m.Kept, &k) != nil || k.OpenAI == nil {
		k.OpenAI = &details{}
	}
	a := addition{fields: map[string]json.RawMessage{}, calls: k.OpenAI.Calls}
	if present(k.OpenAI.Reasoning) {
		a.fields["reasoning_details"] = k.OpenAI.Reasoning
	}
	if present(k.OpenAI.Extra) {
		a.fields["extra_content"] = k.OpenAI.Extra
	}
	if reasoning {
		text, err := json.Marshal(m.Reasoning)
		if err != nil {
			return a, fmt.Errorf("write message: %w", err)
		}
		a.fields["reasoning_content"] = text
	}
	return a, nil
}

func (a addition) empty() bool { return len(a.fields) == 0 && len(a.calls) == 0 }

// to is the message as it goes out.
func (a addition) to(m client.ChatCompletionMessage) (json.RawMessage, error) {
	raw, err := json.Marshal(m)
	if err != nil || a.empty() {
		return raw, err
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	maps.Copy(object, a.fields)
	var calls []map[string]json.RawMessage
	if len(a.calls) > 0 && object["tool_calls"] != nil {
		if err := json.Unmarshal(object["tool_calls"], &calls); err != nil {
			return nil, err
		}
	}
	for i, call := range calls[:min(len(calls), len(a.calls))] {
		if present(a.calls[i]) {
			call["extra_content"] = a.calls[i]
		}
	}
	if calls != nil {
		if object["tool_calls"], err = json.Marshal(calls); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

// withAdditions is the messages of a request, with what goes out beside them by
// their places; nil where there is nothing, and the client library's form will
// do.
func withAdditions(messages []client.ChatCompletionMessage, more map[int]addition) (json.RawMessage, error) {
	if len(more) == 0 {
		return nil, nil
	}
	all := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		raw, err := more[i].to(m)
		if err != nil {
			return nil, fmt.Errorf("write message: %w", err)
		}
		all[i] = raw
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	return raw, nil
}
