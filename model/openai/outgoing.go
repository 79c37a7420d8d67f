package openai

import (
	"encoding/base64"
	"encoding/json"

	api "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
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

// message is a message of a request or a response.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content,omitempty"` // string or parts
	// Reasoning is the thinking, ReasoningAlt its other name (OpenRouter, vLLM).
	Reasoning    *string `json:"reasoning_content,omitempty"`
	ReasoningAlt string  `json:"reasoning,omitempty"`
	Refusal      string  `json:"refusal,omitempty"`
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
