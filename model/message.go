package model

import (
	"encoding/json"
	"fmt"
)

// Role says who speaks.
type Role string

// The roles of the chat completion APIs.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one turn of a conversation, in the form every provider shares.
// Its JSON is that of OpenAI's chat completions, with what others need beside.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Images stand after the content, in their order.
	Images []Image `json:"images,omitempty"`
	// Reasoning is the thinking a provider shows beside the content; it is
	// recorded, and sent back only where a provider asks for it.
	Reasoning string `json:"reasoning_content,omitempty"`
	// Calls are the tools that an assistant wants to use, in its order.
	Calls []Call `json:"tool_calls,omitempty"`
	// CallID is the Call that a message of the role Tool answers.
	CallID string `json:"tool_call_id,omitempty"`
	// Kept is what the provider wants back unchanged when this message, which
	// is its own, is sent to it again: thinking with its signature, encrypted
	// reasoning. Only the package that made it knows what it is.
	Kept json.RawMessage `json:"kept,omitempty"`
}

// Image is a picture in a message.
type Image struct {
	MediaType string `json:"media_type"` // as "image/png"
	Data      []byte `json:"data"`       // the file; base64 in JSON
}

// Definition is a tool that a model may call. Its JSON is that of a "function"
// of OpenAI's.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema of the arguments
}

// Call is one use of a tool.
type Call struct {
	ID   string
	Name string
	// Arguments are JSON as the model wrote it, which need not be valid.
	Arguments string
}

// call is a Call as OpenAI writes it.
type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// MarshalJSON implements json.Marshaler, in OpenAI's form.
func (c Call) MarshalJSON() ([]byte, error) {
	out := call{ID: c.ID, Type: "function"}
	out.Function.Name, out.Function.Arguments = c.Name, c.Arguments
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write tool call: %w", err)
	}
	return data, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Call) UnmarshalJSON(data []byte) error {
	var in call
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read tool call: %w", err)
	}
	*c = Call{ID: in.ID, Name: in.Function.Name, Arguments: in.Function.Arguments}
	return nil
}
