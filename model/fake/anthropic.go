package fake

import (
	"encoding/json"
	"net/http"

	"github.com/minibench/mini/model"
)

// anthropic is Anthropic's messages API.
type anthropic struct{}

var _ wireFormat = anthropic{}

func (anthropic) api() string { return "anthropic" }

func (a anthropic) plain(m *message) any {
	content := []any{}
	if m.thinking != "" {
		content = append(content, object{"type", "thinking", "thinking", m.thinking, "signature", sign(m.thinking)})
	}
	if m.text != "" {
		content = append(content, object{"type", "text", "text", m.text})
	}
	for _, c := range m.calls {
		input := json.RawMessage(c.arguments)
		if !json.Valid(input) {
			input = jsonOf(c.arguments, "") // send invalid JSON as a string: the API has no other form for it
		}
		content = append(content, object{"type", "tool_use", "id", c.idWithPrefix("toolu_"), "name", c.name, "input", input})
	}
	return a.frame(m, content, a.stop(m), m.usage)
}

func (a anthropic) frame(m *message, content []any, stop *string, usage *model.Usage) object {
	o := object{
		"id", "msg_" + m.id, "type", "message", "role", "assistant", "model", m.model, "content", content,
		"stop_reason", stop, "stop_sequence", nil,
	}
	if usage != nil {
		o = append(o, "usage", a.usage(usage))
	}
	return o
}

// events returns the named events of a reply: message_start with the usage of the
// prompt, the blocks with a ping in the first, and message_delta with the usage of
// the reply.
func (a anthropic) events(m *message) [][]byte {
	start := a.frame(m, []any{}, nil, a.startUsage(m))
	parts := [][]byte{event("message_start", object{"type", "message_start", "message", start})}
	index := 0
	block := func(begin object, deltas ...object) {
		parts = append(parts, event("content_block_start", object{"type", "content_block_start", "index", index, "content_block", begin}))
		if index == 0 {
			parts = append(parts, event("ping", object{"type", "ping"}))
		}
		for _, d := range deltas {
			parts = append(parts, event("content_block_delta", object{"type", "content_block_delta", "index", index, "delta", d}))
		}
		parts = append(parts, event("content_block_stop", object{"type", "content_block_stop", "index", index}))
		index++
	}
	if m.thinking != "" {
		block(object{"type", "thinking", "thinking", "", "signature", ""}, append(deltas("thinking_delta", "thinking", m.thinking),
			object{"type", "signature_delta", "signature", sign(m.thinking)})...)
	}
	if text := m.text; text != "" {
		block(object{"type", "text", "text", ""}, deltas("text_delta", "text", text)...)
	}
	for _, c := range m.calls {
		block(object{"type", "tool_use", "id", c.idWithPrefix("toolu_"), "name", c.name, "input", object{}}, append(
			[]object{{"type", "input_json_delta", "partial_json", ""}},
			deltas("input_json_delta", "partial_json", c.arguments)...)...)
	}
	stop := object{"type", "message_delta", "delta", object{"stop_reason", a.stop(m), "stop_sequence", nil}}
	if m.usage != nil {
		stop = append(stop, "usage", object{"output_tokens", m.usage.Completion})
	}
	return append(parts, event("message_delta", stop), event("message_stop", object{"type", "message_stop"}))
}

func (anthropic) startUsage(m *message) *model.Usage {
	if m.usage == nil {
		return nil
	}
	first := *m.usage
	first.Completion, first.Reasoning = min(first.Completion, 1), 0
	return &first
}

func deltas(kind, field, text string) []object {
	var all []object
	for _, s := range pieces(text) {
		all = append(all, object{"type", kind, field, s})
	}
	return all
}

// stop returns Anthropic's stop_reason.
func (anthropic) stop(m *message) *string {
	word := string(m.finish)
	switch {
	case word == "":
		return nil
	case m.finish == model.FinishStop && len(m.calls) > 0:
		word = "tool_use"
	case m.finish == model.FinishStop:
		word = "end_turn"
	case m.finish == model.FinishLength:
		word = "max_tokens"
	case m.finish == model.FinishContentFilter:
		word = "refusal"
	}
	return &word
}

// usage returns Anthropic's usage, where input_tokens excludes cached tokens.
func (anthropic) usage(u *model.Usage) object {
	return object{
		"input_tokens", u.Prompt - u.CacheRead - u.CacheWrite,
		"cache_creation_input_tokens", u.CacheWrite,
		"cache_read_input_tokens", u.CacheRead,
		"output_tokens", u.Completion,
	}
}

func (anthropic) problem(p problem, id string) []byte {
	if p.body != "" {
		return []byte(p.body)
	}
	return jsonOf(object{"type", "error", "error", object{"type", p.typ, "message", p.message}, "request_id", id}, "")
}

func (anthropic) headers(h http.Header, id string) { h.Set("Request-Id", id) }
