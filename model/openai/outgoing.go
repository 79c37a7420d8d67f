package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	api "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// request is the body of a request, without Kwargs. The API's types are those of
// go-openai, except where servers add fields.
type request struct {
	Model         string             `json:"model"`
	Messages      []message          `json:"messages"`
	Tools         []api.Tool         `json:"tools,omitempty"`
	Stream        bool               `json:"stream"`
	StreamOptions *api.StreamOptions `json:"stream_options,omitempty"`
}

// message is a message of a request.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content,omitempty"` // string or parts
	// Reasoning is the thinking; nil if it is not sent.
	Reasoning *string `json:"reasoning_content,omitempty"`
	// Details is thinking in parts, signed or encrypted (OpenRouter). Extra, here
	// and in each call, holds Gemini's thought signatures: Gemini rejects calls
	// without them. Both must be sent back unchanged.
	Details json.RawMessage `json:"reasoning_details,omitempty"`
	Extra   json.RawMessage `json:"extra_content,omitempty"`
	Calls   []toolCall      `json:"tool_calls,omitempty"`
	CallID  string          `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	api.ToolCall
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// placeholder replaces an empty text, which many servers reject.
const placeholder = "(empty)"

// outgoing converts a conversation for a request. Tool results may only be text,
// so their images follow in a user message after the last result. If reasoning is
// set, every assistant message has its thinking, even if empty: servers that require
// thinking require it in all of them.
func outgoing(messages []model.Message, reasoning bool) []message {
	out := make([]message, 0, len(messages))
	var toolImages []model.Image
	for i, m := range messages {
		sent := message{Role: string(m.Role), Content: m.Content, Calls: toolCalls(m.ToolCalls), CallID: m.ToolCallID}
		switch {
		case m.Role != model.Tool && len(m.Images) > 0:
			sent.Content = parts(m.Content, m.Images)
		case m.Content == "" && len(m.ToolCalls) == 0:
			sent.Content = placeholder
		case m.Content == "":
			sent.Content = nil
		}
		switch m.Role {
		case model.Assistant:
			if reasoning {
				sent.Reasoning = &m.Reasoning
			}
			sent.restore(m.ProviderData)
		case model.Tool:
			toolImages = append(toolImages, m.Images...)
		}
		out = append(out, sent)
		if last := i == len(messages)-1 || messages[i+1].Role != model.Tool; last && len(toolImages) > 0 {
			content := parts("The images of the output above:", toolImages)
			out = append(out, message{Role: string(model.User), Content: content})
			toolImages = nil
		}
	}
	return out
}

func toolCalls(calls []model.ToolCall) []toolCall {
	var out []toolCall
	for _, c := range calls {
		out = append(out, toolCall{ToolCall: api.ToolCall{
			ID: c.ID, Type: api.ToolTypeFunction, Function: api.FunctionCall{Name: c.Name, Arguments: c.Arguments},
		}})
	}
	return out
}

// parts returns the content of a message with a text followed by images.
func parts(text string, images []model.Image) []api.ChatMessagePart {
	var out []api.ChatMessagePart
	if text != "" {
		out = append(out, api.ChatMessagePart{Type: api.ChatMessagePartTypeText, Text: text})
	}
	for _, i := range images {
		url := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		out = append(out, api.ChatMessagePart{Type: api.ChatMessagePartTypeImageURL, ImageURL: &api.ChatMessageImageURL{URL: url}})
	}
	return out
}

// toolsOf converts tool definitions for a request.
func toolsOf(tools []model.ToolDefinition) []api.Tool {
	var out []api.Tool
	for _, d := range tools {
		out = append(out, api.Tool{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{
			Name: d.Name, Description: d.Description, Parameters: d.Parameters,
		}})
	}
	return out
}

// providerData is the JSON of model.Message.ProviderData of this provider.
type providerData struct {
	OpenAI details `json:"openai"`
}

// details holds the fields that must be sent back unchanged; see message.
type details struct {
	Reasoning json.RawMessage   `json:"reasoning_details,omitempty"`
	Extra     json.RawMessage   `json:"extra_content,omitempty"`
	Calls     []json.RawMessage `json:"calls,omitempty"` // extra_content of each call
}

// providerData returns the fields to send back with this message; nil if none.
func (m received) providerData() (json.RawMessage, error) {
	var d details
	if list := bytes.TrimSpace(m.Details); isNonEmpty(list, '[') {
		d.Reasoning = list
	}
	if isNonEmpty(m.Extra, '{') {
		d.Extra = m.Extra
	}
	for i, c := range m.Calls {
		if isNonEmpty(c.Extra, '{') {
			d.Calls = append(d.Calls, make([]json.RawMessage, i+1-len(d.Calls))...)
			d.Calls[i] = c.Extra
		}
	}
	if d.Reasoning == nil && d.Extra == nil && d.Calls == nil {
		return nil, nil
	}
	raw, err := json.Marshal(providerData{OpenAI: d})
	if err != nil {
		return nil, transport.MalformedResponse("read answer: %w", err)
	}
	return raw, nil
}

// isNonEmpty reports whether raw starts with begin, the bracket of a list or an
// object, and is longer than two bytes.
func isNonEmpty(raw json.RawMessage, begin byte) bool {
	return len(raw) > 2 && raw[0] == begin
}

// restore sets the fields that providerData saved.
func (m *message) restore(raw json.RawMessage) {
	var data providerData
	if len(raw) == 0 || json.Unmarshal(raw, &data) != nil {
		return
	}
	if transport.IsPresent(data.OpenAI.Reasoning) {
		m.Details = data.OpenAI.Reasoning
	}
	if transport.IsPresent(data.OpenAI.Extra) {
		m.Extra = data.OpenAI.Extra
	}
	for i := range min(len(m.Calls), len(data.OpenAI.Calls)) {
		if extra := data.OpenAI.Calls[i]; transport.IsPresent(extra) {
			m.Calls[i].Extra = extra
		}
	}
}
