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

type anthropicReply struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        object  `json:"usage,omitempty"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (a anthropic) plain(m *message) any {
	r := a.frame(m)
	r.StopReason = a.stop(m)
	if m.usage != nil {
		r.Usage = a.usage(m.usage)
	}
	if m.thinking != "" {
		r.Content = append(r.Content, thinkingBlock{"thinking", m.thinking, sign(m.thinking)})
	}
	if text := m.text; text != "" {
		r.Content = append(r.Content, textBlock{"text", text})
	}
	for _, c := range m.calls {
		input := json.RawMessage(c.arguments)
		if !json.Valid(input) {
			input = jsonOf(c.arguments, "") // send invalid JSON as a string: the API has no other form for it
		}
		r.Content = append(r.Content, toolBlock{"tool_use", c.idWithPrefix("toolu_"), c.name, input})
	}
	return r
}

func (anthropic) frame(m *message) anthropicReply {
	return anthropicReply{ID: "msg_" + m.id, Type: "message", Role: "assistant", Model: m.model, Content: []any{}}
}

// events returns the named events of a reply: message_start with the usage of the
// prompt, the blocks with a ping in the first, and message_delta with the usage of
// the reply.
func (a anthropic) events(m *message) [][]byte {
	start := a.frame(m)
	if first := a.startUsage(m); first != nil {
		start.Usage = a.usage(first)
	}
	parts := [][]byte{event("message_start", object{"type", "message_start", "message", start})}
	index := 0
	block := func(begin any, deltas ...object) {
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
		block(thinkingBlock{Type: "thinking"}, append(deltas("thinking_delta", "thinking", m.thinking),
			object{"type", "signature_delta", "signature", sign(m.thinking)})...)
	}
	if text := m.text; text != "" {
		block(textBlock{Type: "text"}, deltas("text_delta", "text", text)...)
	}
	for _, c := range m.calls {
		block(toolBlock{"tool_use", c.idWithPrefix("toolu_"), c.name, json.RawMessage("{}")}, append(
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
	return jsonOf(struct {
		Type      string `json:"type"`
		Error     any    `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", anthropicError(p), id}, "")
}

func anthropicError(p problem) any {
	typ := p.anthropicType
	if typ == "" {
		typ = p.typ
	}
	return struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}{typ, p.message}
}

func (anthropic) headers(h http.Header, id string) { h.Set("Request-Id", id) }
