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
	Source    struct{ Type string }
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
	if system := blockText(b.Get("system")); system != "" {
		out = append(out, model.Message{Role: model.System, Content: system})
	}
	for _, in := range list {
		m := model.Message{Role: in.Role, Content: text(in.Content)}
		var blocks []block
		_ = json.Unmarshal(in.Content, &blocks) // a string has no blocks
		results := false
		for _, bl := range blocks {
			switch bl.Type {
			case "tool_use":
				m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: bl.ID, Name: bl.Name, Arguments: string(bl.Input)})
			case "tool_result":
				out = append(out, model.Message{Role: model.Tool, Content: blockText(bl.Content), ToolCallID: bl.ToolUseID})
				results = true
			case "image", "document":
				if bl.Source.Type == "url" {
					return nil, ErrRemoteFile
				}
			default:
				m.Content, m.Reasoning = join(m.Content, bl.Text), join(m.Reasoning, bl.Thinking)
			}
		}
		if !results || m.Content != "" {
			out = append(out, m)
		}
	}
	return out, nil
}

// blockText returns the texts of a content.
func blockText(content json.RawMessage) string {
	all := text(content)
	var blocks []block
	_ = json.Unmarshal(content, &blocks) // a string has no blocks
	for _, bl := range blocks {
		all = join(all, bl.Text)
	}
	return all
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
	return keepTypes(tool, "", "custom", "bash_", "text_editor_", "computer_", "memory_")
}

func (messages) serverFields() []string { return []string{"mcp_servers", "container"} }
