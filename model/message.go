package model

import (
	"encoding/json"
	"fmt"
)

// Role is the author of a message.
type Role string

// The roles of the chat completion APIs.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of a conversation, in a provider-independent form. Its
// JSON is OpenAI's chat completion message with a few extra fields.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Images follow the content, in order.
	Images []Image `json:"images,omitempty"`
	// Reasoning is the model's thinking, if the provider returns it. It is
	// recorded, and sent back only to providers that require it.
	Reasoning string `json:"reasoning_content,omitempty"`
	// ToolCalls are the calls an assistant makes, in order.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID is the ID of the ToolCall that a message of role Tool answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// ProviderData is signed thinking or encrypted reasoning, which must be sent
	// back to the same provider unchanged. Only the provider's package interprets
	// it.
	ProviderData json.RawMessage `json:"kept,omitempty"`
}

// Image is an image in a message.
type Image struct {
	MediaType string `json:"media_type"` // for example "image/png"
	Data      []byte `json:"data"`       // the file's contents; base64 in JSON
}

// ToolDefinition is a tool that a model may call. Its JSON is OpenAI's
// "function" object.
type ToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema of the arguments
}

// ToolCall is one call of a tool.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is JSON as the model wrote it, and may be invalid.
	Arguments string
}

// toolCallJSON is a ToolCall in OpenAI's form.
type toolCallJSON struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// MarshalJSON implements json.Marshaler in OpenAI's form.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	out := toolCallJSON{ID: c.ID, Type: "function"}
	out.Function.Name, out.Function.Arguments = c.Name, c.Arguments
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write tool call: %w", err)
	}
	return data, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var in toolCallJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read tool call: %w", err)
	}
	*c = ToolCall{ID: in.ID, Name: in.Function.Name, Arguments: in.Function.Arguments}
	return nil
}

const (
	// tokensPerMessage is the number of tokens that mark each message or tool call.
	tokensPerMessage = 4
	// tokensPerImage is the cost of an image of about 1000x1000 pixels; the
	// providers' rules differ by a factor of two.
	tokensPerImage = 1000
)

// EstimateTokens returns the approximate number of tokens in messages, for use
// before the provider has counted them.
func EstimateTokens(messages []Message) int64 {
	var n int64
	for _, m := range messages {
		n += tokensPerMessage + EstimateTextTokens(m.Content) + tokensPerImage*int64(len(m.Images))
		for _, call := range m.ToolCalls {
			n += tokensPerMessage + EstimateTextTokens(call.Name) + EstimateTextTokens(call.Arguments)
		}
	}
	return n
}

// EstimateTextTokens returns the approximate number of tokens in text, at 3.5
// bytes per token (source code and English, with most tokenizers).
func EstimateTextTokens(text string) int64 { return (int64(len(text))*2 + 6) / 7 }
