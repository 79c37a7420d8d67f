package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/minibench/mini/model"
)

// request is the body of a request, without Kwargs.
type request struct {
	Model     string  `json:"model"`
	MaxTokens int64   `json:"max_tokens"`
	System    []block `json:"system,omitempty"`
	Tools     []tool  `json:"tools,omitempty"`
	Messages  []*turn `json:"messages"`
	Stream    bool    `json:"stream,omitempty"`
}

// tool is a tool that the model may call.
type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cachePoint     `json:"cache_control,omitempty"`
}

// block is a content block.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Source       *source         `json:"source,omitempty"` // image only
	ID           string          `json:"id,omitempty"`     // ID, Name and Input: tool_use only
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"` // ToolUseID, Content and IsError: tool_result only
	Content      []block         `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	CacheControl *cachePoint     `json:"cache_control,omitempty"`

	// raw is the block as the API sent it; it replaces all other fields.
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type fields block // without this method
	return json.Marshal(fields(b))
}

// source is the data of an image.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// cachePoint marks the end of a prefix that the provider may cache.
type cachePoint struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

func textBlock(text string) block { return block{Type: "text", Text: text} }

// request returns the request for the next message of a conversation.
func (m *Model) request(messages []model.Message) (*request, error) {
	system, rest := systemOf(messages)
	turns, err := turnsOf(rest)
	if err != nil {
		return nil, err
	}
	r := &request{
		Model: m.config.Name, MaxTokens: m.config.maxTokens(m.client.ExtraFields), System: system,
		Messages: turns, Stream: m.config.Stream,
	}
	for _, t := range m.config.Tools {
		r.Tools = append(r.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters})
	}
	if _, set := m.client.ExtraFields["cache_control"]; !set && m.config.Cache != CacheOff {
		r.setCachePoints(m.config.Cache)
	}
	return r, nil
}

// systemOf splits off the system messages at the start. Later ones are sent as user
// messages.
func systemOf(messages []model.Message) ([]block, []model.Message) {
	var system []block
	for i, m := range messages {
		if m.Role != model.System {
			return system, messages[i:]
		}
		if strings.TrimSpace(m.Content) != "" {
			system = append(system, textBlock(m.Content))
		}
	}
	return system, nil
}

// maxCachePoints is the largest number of cache points in user turns. With the point of the
// system prompt or the tools, a request has at most three; the API allows four.
const maxCachePoints = 2

// setCachePoints marks the ends of the prefixes to cache. The next step reads the
// cache up to the last point. The point before it was the last point of the previous
// step: without a point there, the provider searches only the last twenty blocks for
// that prefix.
func (r *request) setCachePoints(cache string) {
	point := &cachePoint{Type: "ephemeral"}
	if cache == CacheHour {
		point.TTL = CacheHour
	}
	switch {
	case len(r.System) > 0:
		r.System[len(r.System)-1].CacheControl = point // includes the tools
	case len(r.Tools) > 0:
		r.Tools[len(r.Tools)-1].CacheControl = point
	}
	remaining := maxCachePoints
	for i := len(r.Messages) - 1; i >= 0 && remaining > 0; i-- {
		if t := r.Messages[i]; t.Role == user {
			t.Content[len(t.Content)-1].CacheControl = point
			remaining--
		}
	}
}
