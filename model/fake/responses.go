package fake

import (
	"encoding/json"
	"strings"

	"github.com/minibench/mini/model"
)

// responses is OpenAI's Responses API. Its errors and headers are those of openAI.
type responses struct{ openAI }

var _ wireFormat = responses{}

func (responses) api() string { return "responses" }

func (responses) parse(body []byte) (*request, *problem) {
	var in struct {
		Model        string            `json:"model"`
		Instructions string            `json:"instructions"`
		Input        json.RawMessage   `json:"input"`
		Stream       bool              `json:"stream"`
		Tools        []json.RawMessage `json:"tools"`
	}
	if p := decode(body, &in); p != nil {
		return nil, p
	}
	if in.Model == "" {
		return nil, invalid("you must provide a model parameter")
	}
	r := &request{model: in.Model, stream: in.Stream, usageEvent: true, marked: -1}
	if in.Instructions != "" {
		r.turns = append(r.turns, turn{"system", len(in.Instructions), in.Instructions})
	}
	if p := r.addItems(in.Input); p != nil {
		return nil, p
	}
	var tools []tool
	for _, raw := range in.Tools {
		var t tool
		if p := decode(raw, &t); p != nil {
			return nil, p
		}
		tools = append(tools, t)
		r.extra += len(raw)
	}
	r.tool = commandTool(tools)
	return r, nil
}

// addItems adds an input. Successive items of the model are one turn.
func (r *request) addItems(input json.RawMessage) *problem {
	var text string
	if json.Unmarshal(input, &text) == nil && text != "" {
		r.turns = append(r.turns, turn{"user", len(input), text})
		return nil
	}
	var items []json.RawMessage
	if p := decode(input, &items); p != nil {
		return p
	}
	if len(items) == 0 {
		return invalidParam("input", "Missing required parameter: 'input'.")
	}
	calls := map[string]bool{}
	for _, raw := range items {
		var it struct {
			Type, Role string
			CallID     string `json:"call_id"`
			Content    json.RawMessage
		}
		if p := decode(raw, &it); p != nil {
			return p
		}
		role := it.Role
		switch {
		case it.Type == "function_call":
			role, calls[it.CallID] = "assistant", true
		case it.Type == "reasoning":
			role = "assistant"
		case strings.HasSuffix(it.Type, "_call_output"):
			if !calls[it.CallID] {
				return invalidParam("input", "No tool call found for function call output with call_id "+it.CallID+".")
			}
			role = "tool"
		}
		if n := len(r.turns); n > 0 && role == "assistant" && r.turns[n-1].role == role {
			r.turns[n-1].bytes += len(raw)
			continue
		}
		r.turns = append(r.turns, turn{role, len(raw), texts(it.Content)})
	}
	return nil
}

func (f responses) plain(m *message) any { return f.object(m, "completed", f.output(m)) }

// object returns a response object.
func (responses) object(m *message, status string, output []any) object {
	o := object{"id", "resp_" + m.id, "object", "response", "created_at", m.created.Unix(), "status", status, "model", m.model, "output", output}
	if status != "completed" {
		return append(o, "usage", nil)
	}
	if m.finish == model.FinishLength {
		o[7] = "incomplete"
		o = append(o, "incomplete_details", object{"reason", "max_output_tokens"})
	}
	if u := m.usage; u != nil {
		o = append(o, "usage", object{
			"input_tokens", u.Prompt, "input_tokens_details",
			object{"cached_tokens", u.CacheRead},
			"output_tokens", u.Completion, "output_tokens_details",
			object{"reasoning_tokens", u.Reasoning},
			"total_tokens", u.Prompt + u.Completion,
		})
	}
	return o
}

func (responses) output(m *message) []any {
	items := []any{}
	if m.thinking != "" {
		items = append(items, object{"type", "reasoning", "id", "rs_" + m.id, "summary", []any{object{"type", "summary_text", "text", m.thinking}}})
	}
	if m.text != "" || len(m.calls) == 0 {
		items = append(items, object{
			"type", "message", "id", "msg_" + m.id, "role", "assistant", "status", "completed",
			"content",
			[]any{object{"type", "output_text", "text", m.text, "annotations", []any{}}},
		})
	}
	for _, c := range m.calls {
		items = append(items, object{"type", "function_call", "id", "fc_" + m.id, "call_id", c.idWithPrefix("call_"), "name", c.name, "arguments", c.arguments, "status", "completed"})
	}
	return items
}

// events returns the events of a reply. The last one has all of it.
func (f responses) events(m *message) [][]byte {
	var parts [][]byte
	add := func(typ string, fields ...any) {
		parts = append(parts, event(typ, append(object{"type", typ, "sequence_number", len(parts)}, fields...)))
	}
	add("response.created", "response", f.object(m, "in_progress", []any{}))
	for i, item := range f.output(m) {
		add("response.output_item.added", "output_index", i, "item", item)
		if o, ok := item.(object); ok && o[1] == "message" {
			for _, s := range pieces(m.text) {
				add("response.output_text.delta", "item_id", "msg_"+m.id, "output_index", i, "content_index", 0, "delta", s)
			}
		}
		add("response.output_item.done", "output_index", i, "item", item)
	}
	last := "response.completed"
	if m.finish == model.FinishLength {
		last = "response.incomplete"
	}
	add(last, "response", f.plain(m))
	return parts
}
