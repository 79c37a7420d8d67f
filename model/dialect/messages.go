package dialect

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
)

// messages is Anthropic's Messages.
type messages struct{}

// Name implements Dialect.
func (messages) Name() string { return "messages" }

// block is a content block of any type.
type block struct {
	Type      string
	Text      string
	Thinking  string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string `json:"tool_use_id"`
	Content   json.RawMessage
}

// Messages implements Dialect.
func (messages) Messages(b *Body) ([]model.Message, error) {
	var list []struct {
		Role    model.Role
		Content json.RawMessage
	}
	if err := json.Unmarshal(b.Get("messages"), &list); err != nil {
		return nil, err
	}
	var out []model.Message
	if system := partsText(b.Get("system")); system != "" {
		out = append(out, model.Message{Role: model.System, Content: system})
	}
	for _, in := range list {
		m := model.Message{Role: in.Role, Content: text(in.Content)}
		var blocks []block
		_ = json.Unmarshal(in.Content, &blocks) // a string has no blocks
		results := false
		var content, reasoning paragraphs
		for _, bl := range blocks {
			switch bl.Type {
			case "tool_use":
				m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: bl.ID, Name: bl.Name, Arguments: string(bl.Input)})
			case "tool_result":
				out = append(out, model.Message{Role: model.Tool, Content: partsText(bl.Content), ToolCallID: bl.ToolUseID})
				results = true
			default:
				content.add(bl.Text)
				reasoning.add(bl.Thinking)
			}
		}
		m.Content, m.Reasoning = m.Content+content.String(), reasoning.String()
		if !results || m.Content != "" {
			out = append(out, m)
		}
	}
	return out, nil
}

// Reply implements Dialect.
func (messages) Reply(body []byte, p model.Price) (model.Reply, error) {
	return anthropic.ReadReply(body, p)
}

// Stream implements Dialect.
func (messages) Stream(events iter.Seq2[[]byte, error], p model.Price) (model.Reply, error) {
	return anthropic.ReadStream(events, p)
}

// IsTerminal implements Dialect.
func (messages) IsTerminal(data []byte) bool { return typeOf(data) == "message_stop" }

// HasEventNames implements Dialect.
func (messages) HasEventNames() bool { return true }

// EventName returns the name of an event of a dialect with names.
func EventName(data []byte) string {
	name := typeOf(data)
	if strings.ContainsAny(name, "\r\n") {
		return ""
	}
	return name
}

// typeOf returns the type of an event.
func typeOf(data []byte) string {
	var e struct{ Type string }
	_ = json.Unmarshal(data, &e) // no type
	return e.Type
}

// Problem implements Dialect.
func (messages) Problem(status int, message string) []byte {
	kind := map[int]string{401: "authentication_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}[status]
	switch {
	case kind != "":
	case status >= 500:
		kind = "api_error"
	default:
		kind = "invalid_request_error"
	}
	body, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}}) // cannot fail
	return body
}

func (messages) keepTool(tool json.RawMessage) (json.RawMessage, bool) {
	var t struct{ Type, Name string }
	if json.Unmarshal(tool, &t) == nil && t.Type == "" && t.Name == "" {
		return nil, false // of another dialect
	}
	return keepTypes(tool, "", "custom", "bash_", "text_editor_", "computer_", "memory_")
}

var messagesFields = strings.Fields(`model messages system tools tool_choice max_tokens stream temperature top_k top_p stop_sequences
	thinking output_config output_format context_management cache_control metadata service_tier speed`)

func (messages) fields() []string { return messagesFields }
